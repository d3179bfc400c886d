"""What the stand-in says: tokens, the chat template, scripted and made-up answers."""
