//! Reads and writes of registers and fields by their names, in their units, whatever reaches them.

use anyhow::{ensure, Context};
use serde_json::{json, Map, Value};

use crate::exit::Usage;
use crate::names::{Command, Field, Names, Register, Shown, WORD_BITS};
use crate::number;

/// What reaches the registers of a board.
pub trait Bus {
    /// Whether it reaches what has a name.
    ///
    /// # Errors
    /// It does not, whatever the board is.
    fn reaches(&self, target: Target) -> anyhow::Result<()>;
    /// Reads a register.
    ///
    /// # Errors
    /// No answer, or the board has no such register.
    fn read(&mut self, register: &Register) -> anyhow::Result<u64>;
    /// Writes a register; the board's answer.
    ///
    /// # Errors
    /// As [`Self::read`]; or it is not writable.
    fn write(&mut self, register: &Register, word: u32) -> anyhow::Result<u64>;
    /// Sends a user command; the board's answer.
    ///
    /// # Errors
    /// As [`Self::read`]; or there are no user commands.
    fn command(&mut self, name: &str, code: u16, argument: u32) -> anyhow::Result<u64>;
    /// What register 0 says, which is [`Names::identity`] if the names are those of the board.
    ///
    /// # Errors
    /// As [`Self::read`].
    fn identity(&mut self) -> anyhow::Result<u64>;
}

/// What a name means.
#[derive(Clone, Copy)]
pub enum Target<'a> {
    Command(&'a Command),
    Register(&'a Register, Option<&'a Field>),
}

/// What the board was asked.
pub enum Asked {
    /// The value of the register of this number.
    Read(u32),
    /// That the register of this number gets this word.
    Write(u32, u32),
    /// The command of this code, with this argument.
    Command(u16, u32),
}

/// What was read or written by a name, or by a number.
pub struct Access {
    pub asked: Asked,
    /// The word that the register has now; where that is not known, the board's answer.
    pub word: u64,
    /// The values that the register has now; none of a command.
    pub shown: Vec<Shown>,
}

impl Access {
    /// The values, by name.
    pub fn json(&self) -> Value {
        let values = self.shown.iter().map(|shown| {
            (
                shown.name.clone(),
                json!({ "value": shown.value, "unit": Some(&shown.unit).filter(|unit| !unit.is_empty()) }),
            )
        });
        Value::Object(values.collect::<Map<_, _>>())
    }

    /// A line for each value; the answer to a command.
    pub fn lines(&self) -> Vec<String> {
        let word = self.word;
        match &self.shown[..] {
            [] => vec![format!("{word:#018x} {word}")],
            shown => shown.iter().map(|shown| format!("{} {}", shown.name, shown.text())).collect(),
        }
    }
}

impl Names {
    /// Reads what has this name; or writes it, if there is a value: a number in the unit of the field, which may follow; a word
    /// of the field; or its bits in hexadecimal.
    ///
    /// # Errors
    /// The board is not of this kind, there is no such name, the value does not fit; and those of the bus.
    pub fn access(&self, name: &str, value: &[String], bus: &mut impl Bus) -> anyhow::Result<Access> {
        let target = self.target(name).map_err(Usage::of)?;
        bus.reaches(target).map_err(Usage::of)?;
        // What can be wrong with the value is said before the board is asked.
        match target {
            Target::Command(command) => {
                let argument = number::plain(value)?.unwrap_or(0);
                self.compare(bus)?;
                let word = bus.command(name, command.code, argument)?;
                Ok(Access { asked: Asked::Command(command.code, argument), word, shown: vec![] })
            }
            Target::Register(register, field) if value.is_empty() => {
                self.compare(bus)?;
                let word = bus.read(register)?;
                Ok(Access { asked: Asked::Read(register.number), word, shown: shown(register, field, word) })
            }
            Target::Register(register, field) => {
                let (bits, mask) = self.word(register, field, value).map_err(Usage::of)?;
                self.compare(bus)?;
                let kept = if mask == u64::from(u32::MAX) { 0 } else { bus.read(register)? & !mask };
                let word = u32::try_from(kept | bits).with_context(|| {
                    format!("register `{}`: {kept:#x} has more than the 32 bits that can be written", register.name)
                })?;
                let asked = Asked::Write(register.number, word);
                let answer = bus.write(register, word)?;
                // The answer to a write is what the design of the board makes of it.
                if register.on_request {
                    return Ok(Access { asked, word: answer, shown: vec![] });
                }
                let word = bus.read(register).with_context(|| {
                    format!(
                        "register `{}` was written, and what it has now is not known (a register that cannot be read at any \
                         time has `on_request = true` in the description)",
                        register.name
                    )
                })?;
                Ok(Access { asked, word, shown: shown(register, field, word) })
            }
        }
    }

    /// Compares register 0 with the identity.
    ///
    /// # Errors
    /// The board is of another kind; and those of the bus.
    pub fn compare(&self, bus: &mut impl Bus) -> anyhow::Result<()> {
        let Some(identity) = self.identity else { return Ok(()) };
        let found = bus.identity()?;
        ensure!(
            found == identity,
            "register 0 of this board is {found:#x}, expected {identity:#x}: its registers are not those of {} \
             (--registers FILE names others)",
            self.name
        );
        Ok(())
    }

    fn target(&self, name: &str) -> anyhow::Result<Target<'_>> {
        if let Some(command) = self.commands.iter().find(|command| command.name == name) {
            return Ok(Target::Command(command));
        }
        if let Some(register) = self.register(name) {
            return Ok(Target::Register(register, None));
        }
        let field = self.registers.iter().find_map(|register| {
            let field = register.fields.iter().find(|field| field.name_in(register) == name)?;
            Some(Target::Register(register, Some(field)))
        });
        field.with_context(|| {
            let registers = self.registers.iter().map(|register| register.name.as_str());
            let commands = self.commands.iter().map(|command| command.name.as_str());
            let known: Vec<_> = registers.chain(commands).collect();
            format!("`{name}`: expected a name of {}: {}", self.name, known.join(", "))
        })
    }

    /// The bits to write, and which they are: all, or those of a field, whose neighbours stay.
    fn word(&self, register: &Register, field: Option<&Field>, value: &[String]) -> anyhow::Result<(u64, u64)> {
        let all = u64::from(u32::MAX);
        ensure!(register.writable, "register `{}` of {} is only read", register.name, self.name);
        let field = match (field, &register.fields[..]) {
            (Some(field), _) | (None, [field]) => field,
            (None, fields) => {
                let names: Vec<_> = fields.iter().map(|field| field.name_in(register)).collect();
                let whole = <&[String; 1]>::try_from(value).ok().and_then(|[value]| number::u32(value).ok());
                let word = whole.with_context(|| {
                    format!(
                        "value `{}` of register `{}`: expected its 32 bits as one number; or name a field: {}",
                        value.join(" "),
                        register.name,
                        names.join(", ")
                    )
                })?;
                return Ok((word.into(), all));
            }
        };
        let (low, bits) = (field.low, field.written_bits());
        ensure!(
            low + bits <= WORD_BITS,
            "field `{}` has bits up to {}, expected at most 31: no others can be written",
            field.name_in(register),
            low + bits - 1
        );
        let mask = if register.fields.len() == 1 && low == 0 { all } else { all >> (u32::BITS - bits) << low };
        ensure!(
            mask == all || !register.on_request,
            "field `{}`: a read changes register `{}`, so its other bits cannot be kept; give all 32 bits to the register",
            field.name_in(register),
            register.name
        );
        Ok((field.bits_of(&field.name_in(register), bits, value)? << low, mask))
    }
}

fn shown(register: &Register, field: Option<&Field>, word: u64) -> Vec<Shown> {
    let wanted = field.map(|field| field.name_in(register));
    register.shown(word).filter(|shown| wanted.as_ref().is_none_or(|name| *name == shown.name)).collect()
}

impl Field {
    /// The bits of a value as a user writes it, from bit 0 on; `bits` of them.
    fn bits_of(&self, name: &str, bits: u32, value: &[String]) -> anyhow::Result<u64> {
        let text = value.join(" ");
        // The unit may stand behind the number or against it.
        let number = match self.unit.as_str() {
            "" => text.as_str(),
            unit => text.strip_suffix(unit).unwrap_or(&text).trim_end(),
        };
        if let Some(index) = self.values.iter().position(|word| *word == text) {
            return Ok(index as u64);
        }
        let all = u64::MAX >> (u64::BITS - bits);
        if number.starts_with("0x") || number.starts_with("0X") {
            let found = number::u64(number).ok().filter(|found| *found <= all && number == text);
            return found.with_context(|| format!("value `{text}` of `{name}`: expected at most {bits} bits"));
        }
        let scale = self.scale.unwrap_or(1.0);
        let (least, most) = self.range(bits);
        // Whole numbers exactly, whatever their size; others to the nearest step of the field.
        let steps = match (number.parse::<i128>(), number.parse::<f64>()) {
            (Ok(whole), _) if self.scale.is_none() => Some(whole),
            (_, Ok(value)) if value.is_finite() => Some((value / scale).round() as i128),
            _ => None,
        };
        let steps = steps.filter(|steps| (least..=most).contains(steps) && !number.starts_with('+'));
        let steps = steps.with_context(|| {
            let range = match self.scale {
                Some(scale) => {
                    let ends = [least as f64 * scale, most as f64 * scale];
                    format!("{} to {} {}", ends[0].min(ends[1]), ends[0].max(ends[1]), self.unit)
                }
                None => format!("{least} to {most} {}", self.unit),
            };
            let words = if self.values.is_empty() { String::new() } else { format!(", or {}", self.values.join(", ")) };
            format!("value `{text}` of `{name}`: expected {}{words}, or its bits with 0x", range.trim_end())
        })?;
        Ok(steps as u64 & all)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A board with registers 0 (its identity) to 3.
    struct Registers {
        identity: u64,
        words: [u64; 8],
        /// Bits that the registers keep.
        kept: u64,
        accesses: Vec<String>,
    }

    impl Bus for Registers {
        fn reaches(&self, _: Target) -> anyhow::Result<()> {
            Ok(())
        }

        fn read(&mut self, register: &Register) -> anyhow::Result<u64> {
            self.accesses.push(format!("read {}", register.number));
            Ok(self.words[register.number as usize])
        }

        fn write(&mut self, register: &Register, word: u32) -> anyhow::Result<u64> {
            self.accesses.push(format!("write {} {word:#x}", register.number));
            self.words[register.number as usize] = u64::from(word) & self.kept;
            Ok(99)
        }

        fn command(&mut self, _: &str, code: u16, argument: u32) -> anyhow::Result<u64> {
            self.accesses.push(format!("command {code:#x} {argument}"));
            Ok(7)
        }

        fn identity(&mut self) -> anyhow::Result<u64> {
            Ok(self.identity)
        }
    }

    const BOARD: &str = r#"
        name = "supply"
        identity = 1
        [[register]]
        name = "voltage"
        number = 1
        writable = true
        [[register.field]]
        bits = 16
        signed = true
        scale = 0.25
        unit = "mV"
        [[register]]
        name = "mode"
        number = 2
        writable = true
        [[register.field]]
        name = "state"
        low = 4
        bits = 2
        values = ["off", "ramp", "on"]
        [[register.field]]
        name = "rate"
        low = 8
        bits = 8
        [[register]]
        name = "plain"
        number = 3
        writable = true
        [[register]]
        name = "pressure"
        number = 4
        writable = true
        [[register.field]]
        bits = 12
        unit = "mbar"
        [[register]]
        name = "once"
        number = 5
        writable = true
        on_request = true
        [[register]]
        name = "serial"
        number = 6
        [[command]]
        name = "fire"
        code = 0x400
    "#;

    fn supply() -> (Names, Registers) {
        (Names::parse(BOARD).unwrap(), {
            let words = [1, 0, 0xABCD_00F5, 0, 0, 0, u64::MAX - 1, 0];
            Registers { identity: 1, words, kept: u64::MAX, accesses: vec![] }
        })
    }

    fn access(words: &str, board: &mut Registers, names: &Names) -> Result<String, String> {
        let mut words = words.split(' ').map(String::from);
        let name = words.next().unwrap();
        let found = names.access(&name, &words.collect::<Vec<_>>(), board);
        found.map(|access| access.lines().join("; ")).map_err(|error| format!("{error:#}"))
    }

    #[test]
    fn what_is_written_is_what_is_read_in_the_same_words() {
        let (names, mut board) = supply();
        for (write, bits, read) in [
            ("voltage 1500 mV", 6000, "voltage 1500.0 mV"),
            ("voltage 1500mV", 6000, "voltage 1500.0 mV"),
            ("voltage 1500.0", 6000, "voltage 1500.0 mV"),
            ("voltage -0.25", 0xFFFF, "voltage -0.25 mV"),
            ("voltage 0.3 mV", 1, "voltage 0.25 mV"),
            ("voltage 0x8000", 0x8000, "voltage -8192.0 mV"),
            ("plain 4294967295", 0xFFFF_FFFF, "plain 4294967295"),
            ("plain 0x12", 0x12, "plain 18"),
            // Without a scale a step is 1.
            ("pressure 1500", 1500, "pressure 1500 mbar"),
            ("pressure 1500.0", 1500, "pressure 1500 mbar"),
            ("pressure 1500.0 mbar", 1500, "pressure 1500 mbar"),
            ("pressure 1e3mbar", 1000, "pressure 1000 mbar"),
            ("pressure 1.25E3", 1250, "pressure 1250 mbar"),
            ("pressure 7.6", 8, "pressure 8 mbar"),
            ("pressure .4", 0, "pressure 0 mbar"),
            ("pressure 4095.4", 4095, "pressure 4095 mbar"),
            ("plain 4294967295.0", 0xFFFF_FFFF, "plain 4294967295"),
            ("voltage -5mV", 0xFFEC, "voltage -5.0 mV"),
            ("voltage -.5", 0xFFFE, "voltage -0.5 mV"),
        ] {
            assert_eq!(access(write, &mut board, &names), Ok(read.into()), "{write}");
            let name = write.split(' ').next().unwrap();
            let number = names.register(name).unwrap().number as usize;
            assert_eq!(board.words[number], bits, "{write}");
            assert_eq!(access(name, &mut board, &names), Ok(read.into()), "{write}");
        }
    }

    #[test]
    fn a_field_is_written_and_its_neighbours_stay() {
        let (names, mut board) = supply();
        assert_eq!(access("mode.state on", &mut board, &names), Ok("mode.state on".into()));
        assert_eq!(board.words[2], 0xABCD_00E5);
        assert_eq!(access("mode.rate 255", &mut board, &names), Ok("mode.rate 255".into()));
        assert_eq!(access("mode", &mut board, &names), Ok("mode.state on; mode.rate 255".into()));
        assert_eq!(access("mode.state 1", &mut board, &names), Ok("mode.state ramp".into()));
        assert_eq!(access("mode 0", &mut board, &names), Ok("mode.state off; mode.rate 0".into()));
        assert_eq!(access("fire 3", &mut board, &names), Ok("0x0000000000000007 7".into()));
        assert_eq!(board.accesses[..3], ["read 2", "write 2 0xabcd00e5", "read 2"]);
        assert_eq!(board.accesses.last().unwrap(), "command 0x400 3");
    }

    #[test]
    fn after_a_write_what_the_register_has_is_told() {
        let (names, mut board) = supply();
        board.kept = 0x81;
        assert_eq!(access("plain 5", &mut board, &names), Ok("plain 1".into()));
        assert_eq!(access("mode.rate 3", &mut board, &names), Ok("mode.rate 0".into()));
        let found = names.access("plain", &["0x83".into()], &mut board).unwrap();
        assert!(matches!(found.asked, Asked::Write(3, 0x83)));
        assert_eq!((found.word, found.json()["plain"]["value"].clone()), (0x81, json!(0x81)));
        // A read would change this one.
        board.accesses.clear();
        assert_eq!(access("once 5", &mut board, &names), Ok("0x0000000000000063 99".into()));
        assert_eq!(board.accesses, ["write 5 0x5"]);
        // All bits of the answer.
        let found = names.access("serial", &[], &mut board).unwrap();
        assert_eq!((found.word, found.lines()), (u64::MAX - 1, vec![format!("serial {}", u64::MAX - 1)]));
        assert_eq!(found.json()["serial"]["value"], json!((u64::MAX - 1).to_string()));
    }

    #[test]
    fn what_does_not_fit_is_refused_before_the_board_is_asked() {
        let (names, mut board) = supply();
        for (words, error) in [
            ("voltage 1.5 V", "value `1.5 V` of `voltage`: expected -8192 to 8191.75 mV, or its bits with 0x"),
            ("voltage 8192", "value `8192` of `voltage`: expected -8192 to 8191.75 mV"),
            ("voltage nan", "value `nan` of `voltage`: expected"),
            ("voltage 0x10000", "value `0x10000` of `voltage`: expected at most 16 bits"),
            ("voltage 0x1 mV", "value `0x1 mV` of `voltage`: expected at most 16 bits"),
            ("voltage +1", "value `+1` of `voltage`: expected"),
            ("mode.state warm", "value `warm` of `mode.state`: expected 0 to 3, or off, ramp, on, or its bits with 0x"),
            ("mode.rate 256", "value `256` of `mode.rate`: expected 0 to 255"),
            ("mode on", "value `on` of register `mode`: expected its 32 bits as one number; or name a field: mode.state, mode.rate"),
            ("plain 4294967296", "expected 0 to 4294967295"),
            ("plain 4294967295.5", "expected 0 to 4294967295"),
            ("plain -inf", "value `-inf` of `plain`: expected 0 to 4294967295"),
            ("pressure 4096.0", "value `4096.0` of `pressure`: expected 0 to 4095 mbar"),
            ("pressure -1e0", "value `-1e0` of `pressure`: expected 0 to 4095 mbar"),
            ("pressure 1.5.0", "value `1.5.0` of `pressure`: expected 0 to 4095 mbar"),
            ("pressure 1e3 V", "value `1e3 V` of `pressure`: expected 0 to 4095 mbar"),
            ("serial 1", "register `serial` of supply is only read"),
            ("voltage -inf", "value `-inf` of `voltage`: expected -8192 to 8191.75 mV"),
            ("fire 1 2", "argument `1 2`: expected one number; units are for names"),
            ("volts", "`volts`: expected a name of supply: voltage, mode, plain, pressure, once, serial, fire"),
        ] {
            let said = access(words, &mut board, &names).unwrap_err();
            assert!(said.contains(error), "{words}: {said}");
            let words: Vec<_> = words.split(' ').map(String::from).collect();
            let error = names.access(&words[0], &words[1..], &mut board).map(drop).unwrap_err();
            assert!(error.is::<Usage>(), "{words:?}: wrong arguments");
        }
        assert!(board.accesses.is_empty(), "{:?}", board.accesses);
    }

    #[test]
    fn another_board_is_neither_read_nor_written() {
        let (names, mut board) = supply();
        board.identity = 2;
        for words in ["voltage 1", "voltage", "fire"] {
            let said = access(words, &mut board, &names).unwrap_err();
            assert!(
                said.contains("register 0 of this board is 0x2, expected 0x1: its registers are not those of supply"),
                "{said}"
            );
        }
        assert!(board.accesses.is_empty());
    }
}
