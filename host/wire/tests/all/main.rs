//! Tests of the wire formats. One program, which is linked once.

use fadelink_wire::MacAddr;
use serde_json::Value;

mod fadc;
mod fade1;
mod fade10g;
mod udp;

/// An address that came over the wire, which may be any.
fn mac(text: &Value) -> Option<MacAddr> {
    let bytes: Vec<_> = text.as_str()?.split(':').map(|byte| u8::from_str_radix(byte, 16).unwrap()).collect();
    Some(MacAddr(bytes.try_into().unwrap()))
}
