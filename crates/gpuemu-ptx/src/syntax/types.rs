//! Types and state spaces of PTX.

use std::fmt;

macro_rules! names {
    ($(#[$meta:meta])* $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)? }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the variants are their own names")]
        pub enum $name { $($(#[$variant_meta])* $variant),+ }

        impl $name {
            /// What is written, without its dot.
            pub const fn name(self) -> &'static str {
                match self { $($name::$variant => $text),+ }
            }

            /// What a word without its dot stands for.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($text => Some($name::$variant),)+ _ => None }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(formatter, ".{}", self.name())
            }
        }
    };
}

names! {
    /// The type of a variable, or a type that stands among an instruction's modifiers.
    ScalarType {
        B8 = "b8", B16 = "b16", B32 = "b32", B64 = "b64", B128 = "b128",
        U8 = "u8", U16 = "u16", U32 = "u32", U64 = "u64",
        S8 = "s8", S16 = "s16", S32 = "s32", S64 = "s64",
        F16 = "f16", F16x2 = "f16x2", F32 = "f32", F64 = "f64",
        Bf16 = "bf16", Bf16x2 = "bf16x2", Tf32 = "tf32", F32x2 = "f32x2",
        E4m3 = "e4m3", E5m2 = "e5m2", E4m3x2 = "e4m3x2", E5m2x2 = "e5m2x2",
        Pred = "pred",
        Texref = "texref", Samplerref = "samplerref", Surfref = "surfref",
    }
}

impl ScalarType {
    /// Bytes of one value in memory; predicates and opaque handles have none there.
    pub const fn bytes(self) -> Option<u64> {
        use ScalarType::*;
        Some(match self {
            B8 | U8 | S8 | E4m3 | E5m2 => 1,
            B16 | U16 | S16 | F16 | Bf16 | E4m3x2 | E5m2x2 => 2,
            B32 | U32 | S32 | F32 | F16x2 | Bf16x2 | Tf32 => 4,
            B64 | U64 | S64 | F64 | F32x2 => 8,
            B128 => 16,
            Pred | Texref | Samplerref | Surfref => return None,
        })
    }

    /// Whether it is a number with a point.
    pub const fn is_float(self) -> bool {
        use ScalarType::*;
        matches!(self, F16 | F16x2 | F32 | F64 | Bf16 | Bf16x2 | Tf32 | F32x2 | E4m3 | E5m2 | E4m3x2 | E5m2x2)
    }
}

names! {
    /// Where a variable lives.
    StateSpace {
        Register = "reg",
        Constant = "const",
        Global = "global",
        Local = "local",
        Parameter = "param",
        Shared = "shared",
        Texture = "tex",
    }
}

names! {
    /// How many elements a vector has.
    VectorWidth { V2 = "v2", V4 = "v4", V8 = "v8" }
}

impl VectorWidth {
    /// The number of elements.
    pub const fn elements(self) -> u64 {
        match self {
            VectorWidth::V2 => 2,
            VectorWidth::V4 => 4,
            VectorWidth::V8 => 8,
        }
    }
}
