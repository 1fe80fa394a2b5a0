"""How cases are drawn: random streams, sizes and values, as the engine draws them."""
