//! Products against recordings, against each other, and against plain restatements.
