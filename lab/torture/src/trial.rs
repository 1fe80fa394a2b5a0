//! A trial: what is done to gpuemu, and how it ended.

/// How much is done, and from which number every choice is drawn.
pub struct Extent {
    /// Whether this is the short form.
    pub short: bool,
    pub seed: u64,
}

impl Extent {
    /// How many of something: all of them, or as many as the short form does.
    pub fn count(&self, all: u64, short: u64) -> u64 {
        if self.short { short } else { all }
    }
}

/// How a trial ended.
pub enum Ended {
    /// Everything held; what was counted and measured.
    Held(Vec<String>),
    /// Something did not hold.
    Broken(String),
    /// This machine cannot do it.
    Impossible(String),
    /// It has no short form, and why.
    LeftOut(String),
}

impl From<Result<Vec<String>, String>> for Ended {
    fn from(result: Result<Vec<String>, String>) -> Self {
        result.map_or_else(Ended::Broken, Ended::Held)
    }
}

/// What is done to gpuemu.
pub struct Trial {
    /// Its name on the command line.
    pub name: &'static str,
    /// One line about it.
    pub about: &'static str,
    pub run: fn(&Extent) -> Ended,
}

/// A number with its thousands apart.
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thousands_are_apart() {
        assert_eq!([0, 999, 1000, 1_234_567].map(grouped), ["0", "999", "1,000", "1,234,567"]);
    }
}
