"""Arrays and numbers: their dtypes, and how messages write them."""
