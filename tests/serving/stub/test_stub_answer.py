from seatrial.serving.stub.answers.answer import cut
from seatrial.serving.stub.answers.chat import END
from seatrial.serving.stub.answers.deltas import CallBegins, CallGoesOn, Words, deltas
from seatrial.serving.stub.answers.reply import Call, Reply, babble, seed_of
from seatrial.serving.stub.answers.tokens import tokenize

CALL = Call("run", '{"command": "ls -l"}')


def test_a_reply_with_room_ends_by_itself_with_the_token_that_ends_a_message() -> None:
    answer = cut(Reply("one two"), 10)
    assert (answer.text, answer.finish, answer.pieces) == ("one two", "stop", ["one", " two", ""])
    assert answer.ids == tokenize(f"one two{END}")


def test_a_reply_without_room_is_cut() -> None:
    answer = cut(Reply("one two"), 2)
    assert (answer.finish, len(answer.ids)) == ("length", 2)
    assert cut(Reply("one two"), 1).text == "one"


def test_the_stop_string_that_is_complete_first_ends_the_answer() -> None:
    answer = cut(Reply("one two three"), 10, stops=["three", "wo", ""])
    assert (answer.text, answer.stop_reason, answer.finish) == ("one t", "wo", "stop")
    assert answer.pieces == ["one", " two"]
    assert cut(Reply("one two three"), 10, stops=["wo"], include_stop=True).text == "one two"
    assert cut(Reply("one two three"), 1, stops=["wo"]).finish == "length"


def test_calls_are_found_only_when_whole_and_asked_for() -> None:
    reply = Reply("I look.", (CALL,))
    found = cut(reply, 100, find_calls=True)
    assert (found.content, found.calls) == ("I look.", (CALL,))
    for answer in (cut(reply, 100), cut(reply, 9, find_calls=True)):
        assert answer.calls == ()
        assert "<tool_call>" in answer.content or answer.finish == "length"


def test_deltas_add_up_to_the_answer() -> None:
    for reply in (
        Reply("one two"),
        Reply("", (CALL, CALL)),
        Reply("Look:", (CALL,)),
        Reply("", (Call("f", "7"),)),
    ):
        answer = cut(reply, 100, find_calls=True)
        found = deltas(answer)
        assert len(found) == len(answer.ids)
        assert "".join(delta.text for delta in found if isinstance(delta, Words)) == reply.content
        begun = [delta for delta in found if isinstance(delta, CallBegins)]
        assert [delta.name for delta in begun] == [call.name for call in reply.calls]
        for index, call in enumerate(reply.calls):
            parts = [delta for delta in found if isinstance(delta, CallGoesOn) and delta.index == index]
            assert "".join(part.arguments for part in parts) == call.arguments


def test_deltas_stop_where_the_text_stops() -> None:
    answer = cut(Reply("one two three"), 10, stops=["wo"])
    assert deltas(answer) == [Words("one"), Words(" t")]


def test_babble_is_one_token_a_word_and_depends_on_model_and_prompt() -> None:
    said = [babble(seed_of(model, prompt), 20).text for model in ("a", "b") for prompt in (b"x", b"y")]
    assert len(set(said)) == 4
    assert said[0] == babble(seed_of("a", b"x"), 20).text
    assert len(tokenize(said[0])) == 20
