//! The schemas of types that are written and read by hand.

use std::borrow::Cow;
use std::collections::BTreeMap;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};

use crate::Strategy;
use crate::number_text::NumberText;
use crate::picture::ElementError;
use crate::seed_text::SeedText;
use crate::tensor_data::{NamedTensorData, TensorData};

impl JsonSchema for SeedText {
    fn schema_name() -> Cow<'static, str> {
        "Seed".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A whole number from 0 to 18446744073709551615, as a string.",
            "type": "string",
            "pattern": "^[0-9]{1,20}$"
        })
    }
}

impl JsonSchema for NumberText {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number; what JSON has no number for is a string.",
            "anyOf": [{ "type": "number" }, { "enum": ["NaN", "Infinity", "-Infinity"] }]
        })
    }
}

impl JsonSchema for ElementError {
    fn schema_name() -> Cow<'static, str> {
        "ElementError".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A share of what is allowed, NaN for a special value, or null where nothing was judged.",
            "anyOf": [{ "type": ["number", "null"] }, { "enum": ["NaN", "Infinity"] }]
        })
    }
}

impl JsonSchema for Strategy {
    fn schema_name() -> Cow<'static, str> {
        "Strategy".into()
    }
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": "string", "enum": Strategy::ALL.map(Strategy::name) })
    }
}

impl JsonSchema for NamedTensorData {
    fn schema_name() -> Cow<'static, str> {
        "NamedOfTensorData".into()
    }
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        BTreeMap::<String, TensorData>::json_schema(generator)
    }
}
