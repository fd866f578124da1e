//! The JSON schema of an experiment file.

use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::Schema;
use serde_json::Value;

use super::experiment::Experiment;

/// Of the file: each field has a default, or is required.
pub fn schema() -> Schema {
    let settings = SchemaSettings::draft2020_12().with_transform(RecursiveTransform(no_value));
    settings.into_generator().into_root_schema_for::<Experiment>()
}

fn admits_null(field: &Value) -> bool {
    let is_null = |kind: &Value| kind["type"] == "null";
    field["type"].as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "null"))
        || field["anyOf"].as_array().is_some_and(|kinds| kinds.iter().any(is_null))
}

/// A field that may be left out without a value in its place has the default null, which TOML cannot say.
fn no_value(schema: &mut Schema) {
    let Some(Value::Object(fields)) = schema.get_mut("properties") else { return };
    for field in fields.values_mut().filter(|field| admits_null(field)) {
        field["default"] = Value::Null;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_has_a_default_or_is_required() {
        let schema = schema().to_value();
        let tables = schema["$defs"].as_object().unwrap().values().chain([&schema]);
        let mut defaults = 0;
        for table in tables {
            let required = table["required"].as_array().map_or(&[][..], Vec::as_slice);
            for (name, field) in table["properties"].as_object().into_iter().flatten() {
                let (default, meaning) = (field.get("default"), field["description"].as_str().unwrap());
                assert_ne!(default.is_some(), required.iter().any(|required| required == name), "{name}: {field}");
                // What happens then is in its meaning.
                let is_explained = meaning.to_lowercase().contains("without it");
                assert!(default != Some(&Value::Null) || is_explained, "{name}: {meaning}");
                defaults += usize::from(default.is_some());
            }
        }
        assert!(defaults > 50, "{defaults}");
    }
}
