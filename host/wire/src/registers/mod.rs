//! Registers of the cores with AXI4-Lite, by name.
//!
//! The maps are made from the SystemRDL sources in `rtl/axi/registers`; docs/registers.md has the same as tables.

#[rustfmt::skip]
mod maps;
mod register;

pub use maps::*;
pub use register::{Field, Register};

/// The register of that name in a map.
#[must_use]
pub fn find(map: &[Register], name: &str) -> Option<Register> {
    map.iter().find(|register| register.name == name).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_in_order_and_their_fields_apart() {
        for map in [FADE, TCP, UDP, FADC, PTP] {
            assert!(map.windows(2).all(|pair| pair[0].address + 4 <= pair[1].address));
            for register in map {
                assert_eq!(register.address % 4, 0);
                assert!(find(map, register.name) == Some(*register));
                let mut next = 0;
                for field in register.fields {
                    assert!(field.low >= next && field.bits >= 1 && field.low + field.bits <= 32, "{}", register.name);
                    next = field.low + field.bits;
                }
            }
        }
    }

    #[test]
    fn a_field_is_cut_out_of_its_word() {
        let control = find(UDP, "control").unwrap();
        assert_eq!(control.field("ptp_role").unwrap().get(0b1010), 2);
        assert_eq!(control.field("start").unwrap().get(0xFFFF), 0xFF);
        assert_eq!(find(UDP, "peer").unwrap().fields[0].get(u32::MAX), u32::MAX);
        assert!(control.field("no_such_field").is_none() && find(UDP, "no_such_register").is_none());
        assert_eq!(find(FADE, "counters.transmit.sent").unwrap().short_name(), "sent");
    }
}
