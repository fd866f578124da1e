//! The message of a record.

use fadelink_wire::fadc::Message as Fadc;

/// The message that a record holds and that takes all of it; or why the record is malformed.
///
/// What stands behind the end of a message, as where records were put together, would be lost with it.
pub(super) fn whole(data: &[u8]) -> Result<Fadc<'_>, String> {
    let parsed = Fadc::parse(data).map_err(|error| error.to_string())?;
    match data.len() - parsed.bytes().len() {
        0 => Ok(parsed),
        more => Err(format!("{more} bytes stand behind the end of its message")),
    }
}
