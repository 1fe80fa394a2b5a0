//! What a callable can be given, and how it is.

use serde::{Deserialize, Serialize};

/// What a callable can be given, as its signature says.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
pub struct Accepted {
    /// Parameters that can be given by keyword.
    pub names: Vec<String>,
    /// Whether any keyword can be given (`**kwargs`).
    pub any: bool,
    /// Positional parameters without a default.
    pub required: Vec<String>,
    /// Whether any number of positional arguments can be given (`*args`, or a signature that is not known).
    pub any_positional: bool,
    /// Whether its arrays lie in memory that it is given, so that it can write its outputs there.
    #[serde(default)]
    pub shares_memory: bool,
}

/// How a callable is given its inputs. Parameters are always given by keyword.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CallStyle {
    /// Each by its name.
    Keywords,
    /// One after the other.
    Positional,
    /// All in one dict.
    Dictionary,
}

impl CallStyle {
    /// The name by which it is known in Python.
    pub const fn name(self) -> &'static str {
        match self {
            CallStyle::Keywords => "keywords",
            CallStyle::Positional => "positional",
            CallStyle::Dictionary => "dictionary",
        }
    }
}

/// The parameter by which functions take memory for their outputs, as NumPy and PyTorch have it.
const OUT: &str = "out";

impl Accepted {
    /// The keyword by which it is given memory for its outputs, if its signature names one. Arguments of the op come
    /// first: what one of them is called is not free. `**kwargs` alone promises nothing about outputs.
    pub fn out_keyword<'a>(&self, mut arguments: impl Iterator<Item = &'a str>) -> Option<&'static str> {
        let named = self.shares_memory && self.names.iter().any(|known| known == OUT);
        (named && arguments.all(|argument| argument != OUT)).then_some(OUT)
    }

    /// What is left to be given once memory for the outputs goes to a keyword.
    pub fn without(&self, keyword: Option<&str>) -> Self {
        let mut left = self.clone();
        let other = |known: &String| keyword != Some(known.as_str());
        left.names.retain(other);
        left.required.retain(other);
        left
    }

    /// Whether a parameter can be given by this name.
    pub fn takes(&self, name: &str) -> bool {
        self.any || self.names.iter().any(|known| known == name)
    }

    /// How inputs of these names are given. The names are known only when a call is made, so the style is chosen then.
    ///
    /// By keywords if every name can be given so; a function with `**kwargs` whose required parameters have other
    /// names than all inputs cannot be called so, and one with `*args, **kwargs` alone says nothing about names. In one dict if there is one required positional parameter and no
    /// more can be given, and there are several inputs and no other parameter, or it is called `inputs`. In order
    /// otherwise.
    pub fn style_for(&self, inputs: &[&str]) -> CallStyle {
        let named = |name: &String| inputs.contains(&name.as_str());
        let unnamed = self.any_positional && self.names.is_empty();
        let unknown = self.any && (unnamed || !self.required.is_empty() && !self.required.iter().any(named));
        if !unknown && inputs.iter().all(|name| self.takes(name)) {
            return CallStyle::Keywords;
        }
        match self.required.as_slice() {
            [only] if !self.any_positional && (only == "inputs" || inputs.len() > 1 && self.names.len() == 1) => {
                CallStyle::Dictionary
            }
            _ => CallStyle::Positional,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accepted(names: &[&str], required: usize, any: bool, any_positional: bool) -> Accepted {
        let names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
        Accepted { required: names[..required].to_vec(), names, any, any_positional, shares_memory: true }
    }

    #[test]
    fn inputs_go_where_the_signature_has_room_for_them() {
        let style = |accepted: Accepted, inputs: &[&str]| accepted.style_for(inputs);
        // def f(a, b, axis=-1)
        assert_eq!(style(accepted(&["a", "b", "axis"], 2, false, false), &["a", "b"]), CallStyle::Keywords);
        // def f(x, y)
        assert_eq!(style(accepted(&["x", "y"], 2, false, false), &["a", "b"]), CallStyle::Positional);
        // def f(**kwargs), def f(a, **kwargs), def f(x, **kwargs)
        assert_eq!(style(accepted(&[], 0, true, false), &["a"]), CallStyle::Keywords);
        assert_eq!(style(accepted(&["a"], 1, true, false), &["a", "b"]), CallStyle::Keywords);
        assert_eq!(style(accepted(&["x"], 1, true, false), &["a"]), CallStyle::Positional);
        // def f(*args, **kwargs)
        assert_eq!(style(accepted(&[], 0, true, true), &["a"]), CallStyle::Positional);
        // def f(tensors), def f(inputs), def f(x), def f(x, *rest)
        assert_eq!(style(accepted(&["tensors"], 1, false, false), &["a", "b"]), CallStyle::Dictionary);
        assert_eq!(style(accepted(&["inputs"], 1, false, false), &["a"]), CallStyle::Dictionary);
        assert_eq!(style(accepted(&["x"], 1, false, false), &["a"]), CallStyle::Positional);
        assert_eq!(style(accepted(&["x"], 1, false, true), &["a", "b"]), CallStyle::Positional);
    }

    #[test]
    fn outputs_go_to_a_parameter_that_no_argument_of_the_op_needs() {
        let keyword = |accepted: &Accepted, arguments: &[&str]| accepted.out_keyword(arguments.iter().copied());
        // def f(x, out), def f(**kwargs), def f(x, out: the op's own input)
        let takes = accepted(&["x", "out"], 2, false, false);
        assert_eq!(keyword(&takes, &["x", "scale"]), Some("out"));
        assert_eq!(keyword(&accepted(&[], 0, true, false), &["x"]), None);
        assert_eq!(keyword(&takes, &["x", "out"]), None);
        // Arrays that cannot be written.
        assert_eq!(keyword(&Accepted { shares_memory: false, ..takes.clone() }, &["x"]), None);
        // def f(tensors, out)
        let takes = accepted(&["tensors", "out"], 2, false, false);
        assert_eq!(takes.style_for(&["a", "b"]), CallStyle::Positional);
        assert_eq!(takes.without(Some("out")).style_for(&["a", "b"]), CallStyle::Dictionary);
        assert_eq!(takes.without(None), takes);
    }
}
