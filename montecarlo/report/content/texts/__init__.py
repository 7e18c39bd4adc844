"""The five texts: who says what, how, in which sentence, and what does not hold."""
