//! What a register map says of a register.

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
    pub(super) const fn new(
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
    pub(super) const fn new(name: &'static str, low: u32, bits: u32, description: &'static str) -> Field {
        Field { name, low, bits, description }
    }

    /// Its value in a word of the register.
    #[must_use]
    pub fn get(&self, word: u32) -> u32 {
        word >> self.low & (u32::MAX >> (32 - self.bits))
    }
}
