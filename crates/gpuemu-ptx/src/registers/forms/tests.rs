//! Recorded answers of the chip, a handful for each family.
