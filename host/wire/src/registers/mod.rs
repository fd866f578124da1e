//! Registers of the cores and of the example boards, by name.
//!
//! The maps are made from the SystemRDL sources in `rtl/axi/registers`; docs/registers.md has the same as tables.

#[rustfmt::skip]
mod maps;

pub use maps::*;

/// A register of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Register {
    /// Its name, behind the names of what contains it, with points.
    pub name: &'static str,
    /// Its address in bytes.
    pub address: u32,
    /// Whether it can be written.
    pub writable: bool,
    /// What it is; empty if its fields tell.
    pub description: &'static str,
    /// Its fields, from the lowest bit up; one with the name `value` is the whole register.
    pub fields: &'static [Field],
}

/// Bits of a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: &'static str,
    /// The lowest bit.
    pub low: u32,
    /// How many bits, 1 to 32.
    pub bits: u32,
    /// What it is; empty if the register tells.
    pub description: &'static str,
}

impl Register {
    const fn new(
        name: &'static str,
        address: u32,
        writable: bool,
        description: &'static str,
        fields: &'static [Field],
    ) -> Register {
        Register { name, address, writable, description, fields }
    }

    /// Its name without the names of what contains it.
    #[must_use]
    pub fn short_name(&self) -> &'static str {
        self.name.rsplit('.').next().unwrap_or(self.name)
    }

    /// The field of that name.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

impl Field {
    const fn new(name: &'static str, low: u32, bits: u32, description: &'static str) -> Field {
        Field { name, low, bits, description }
    }

    /// Its value in a word of the register.
    #[must_use]
    pub fn get(&self, word: u32) -> u32 {
        word >> self.low & (u32::MAX >> (32 - self.bits))
    }
}

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
        for map in [FADE, TCP, UDP, FADC, PTP, EXAMPLE] {
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
        let phy = find(EXAMPLE, "phy").unwrap();
        assert_eq!(phy.field("speed").unwrap().get(0b1010), 1);
        assert_eq!(phy.field("downs").unwrap().get(0xFFFF_0000), 0xFFFF);
        assert_eq!(find(EXAMPLE, "scratch").unwrap().fields[0].get(u32::MAX), u32::MAX);
        assert!(phy.field("no_such_field").is_none() && find(EXAMPLE, "no_such_register").is_none());
        assert_eq!(find(FADE, "counters.transmit.sent").unwrap().short_name(), "sent");
    }
}
