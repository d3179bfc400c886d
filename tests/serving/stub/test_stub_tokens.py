from seatrial.serving.stub.answers.tokens import pieces, token_ids, tokenize

TEXT = (
    "<|im_start|>user\nIt's 9 o'clock,  über-straße\tund 東京 — ok? <tool_call>{\"a\": [1, 2]}</tool_call> \n"
)


def test_pieces_are_the_whole_text() -> None:
    assert "".join(pieces(TEXT)) == TEXT


def test_the_same_text_always_has_the_same_ids() -> None:
    # A number written down: another process, another day must give it too.
    assert tokenize("hello") == [907060870]


def test_cutting_at_a_token_cuts_the_tokens() -> None:
    parts = pieces(TEXT)
    for end in range(len(parts) + 1):
        assert tokenize("".join(parts[:end])) == token_ids(parts[:end])
