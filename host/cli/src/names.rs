//! Names of a board's registers and user commands, from a description file (docs/boards.md).

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use anyhow::{anyhow, ensure, Context};
use fadelink_wire::fade10g::CMD_USER_FIRST;
use serde::Deserialize;
use serde_json::{json, Value};

use crate::number;

/// The description of the example boards, which `tools/registers.py` writes from `rtl/axi/registers/example.rdl`.
const EXAMPLE: &str = include_str!("example.toml");
/// Code of the user command that reads register 0; the number of the register is added.
pub const READ_REGISTER: u16 = 0x0100;
/// Code of the user command that writes register 0.
pub const WRITE_REGISTER: u16 = 0x0200;
/// The answer of a register or a command that is not there.
pub const NONE: u64 = u64::MAX;
/// Registers that user commands reach.
const REACHED: u32 = 0x100;
/// Bits of a register behind slow control, and of what a user command writes.
pub const WORD_BITS: u32 = u32::BITS;

/// Where the names are.
#[derive(clap::Args)]
pub struct Args {
    /// Names of the board's registers and user commands, a TOML file [default: those of the example boards]
    #[arg(long, value_name = "FILE")]
    registers: Option<PathBuf>,
}

impl Args {
    /// The user has named a file: the board is to be of its kind, whatever is asked.
    pub fn is_named(&self) -> bool {
        self.registers.is_some()
    }

    /// The names in the file; without one, those of the example boards.
    pub fn read(&self) -> anyhow::Result<Names> {
        read(self.registers.as_deref())
    }
}

/// The names in a description file; without one, those of the example boards.
pub fn read(registers: Option<&Path>) -> anyhow::Result<Names> {
    registers.map_or_else(|| Names::parse(EXAMPLE), Names::from_file)
}

/// What a user gives for a number: the number, or a name of it.
#[derive(Clone, Debug)]
pub enum Which<T> {
    Number(T),
    Name(String),
}

impl<T> Which<T> {
    /// Parses it; `number` is the parser of numbers.
    pub fn parse(text: &str, number: impl Fn(&str) -> Result<T, String>) -> Result<Which<T>, String> {
        if is_name(text) {
            return Ok(Which::Name(text.into()));
        }
        number(text).map(Which::Number).map_err(|expected| format!("{expected}, or a name of --registers"))
    }
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_') && !text.contains(char::is_whitespace)
}

/// What a kind of board has.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Names {
    /// The name of the board.
    pub name: String,
    /// What register 0 of such a board answers.
    pub identity: Option<u64>,
    #[serde(default, rename = "register")]
    pub registers: Vec<Register>,
    #[serde(default, rename = "command")]
    pub commands: Vec<Command>,
}

/// A register.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Register {
    pub name: String,
    /// The number of user commands, or the address of slow control.
    pub number: u32,
    #[serde(default)]
    pub writable: bool,
    #[serde(default)]
    #[expect(dead_code, reason = "for people who read the file")]
    description: String,
    /// A read changes the board: only `fadelink cmd` and `fadelink register` read it.
    #[serde(default)]
    pub on_request: bool,
    #[serde(default, rename = "field")]
    pub fields: Vec<Field>,
}

/// Bits of a register; without a name, the register itself.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Field {
    #[serde(default)]
    name: String,
    #[serde(default)]
    pub low: u32,
    /// 32 if it does not say.
    bits: Option<u32>,
    /// A register without fields: all that it answers.
    #[serde(skip)]
    is_whole: bool,
    #[serde(default)]
    #[expect(dead_code, reason = "for people who read the file")]
    description: String,
    /// Two's complement.
    #[serde(default)]
    pub signed: bool,
    /// What 1 means, in units.
    pub scale: Option<f64>,
    #[serde(default)]
    pub unit: String,
    /// A word for each number from 0 on.
    #[serde(default)]
    pub values: Vec<String>,
    /// `fadelink top` has a column of it.
    #[serde(default)]
    top: bool,
}

/// A user command.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    pub name: String,
    pub code: u16,
    #[serde(default)]
    #[expect(dead_code, reason = "for people who read the file")]
    description: String,
}

/// A value of a register as it is shown.
pub struct Shown {
    /// The name of the register, and of the field.
    pub name: String,
    /// A number, or a word; null if the board has no such register.
    pub value: Value,
    pub unit: String,
    /// `fadelink top` has a column of it.
    pub top: bool,
}

impl Shown {
    /// A value without a unit.
    pub fn new(name: &str, value: impl Into<Value>) -> Shown {
        Shown { name: name.into(), value: value.into(), unit: String::new(), top: false }
    }

    /// The value with its unit.
    pub fn text(&self) -> String {
        if self.value.is_null() {
            return "not there".into();
        }
        let value = self.value.as_str().map_or_else(|| self.value.to_string(), str::to_string);
        format!("{value} {}", self.unit).trim_end().into()
    }
}

impl Names {
    fn from_file(path: &Path) -> anyhow::Result<Names> {
        let shown = path.display();
        let text = fadelink_sinks::settings::read(path).with_context(|| format!("cannot read {shown}"))?;
        Names::parse(&text).with_context(|| format!("{shown} does not describe registers (docs/boards.md tells how)"))
    }

    /// The names in the text of a description.
    pub fn parse(text: &str) -> anyhow::Result<Names> {
        let mut names: Names = toml::from_str(text).map_err(|error| anyhow!("{}", error.to_string().trim_end()))?;
        for register in &mut names.registers {
            if register.fields.is_empty() {
                let bits = Some(register.width());
                register.fields.push(Field { bits, is_whole: true, ..Field::default() });
            }
        }
        names.check()?;
        Ok(names)
    }

    fn check(&self) -> anyhow::Result<()> {
        let mut taken = HashSet::new();
        let registers = self.registers.iter().map(|register| &register.name);
        for name in registers.chain(self.commands.iter().map(|command| &command.name)) {
            ensure!(is_name(name), "name `{name}`: expected a word that begins with a letter");
            ensure!(taken.insert(name.clone()), "name `{name}`: expected one register or command with this name");
        }
        for register in &self.registers {
            register.check()?;
            for field in register.fields.iter().filter(|field| !field.name.is_empty()) {
                let name = field.name_in(register);
                ensure!(
                    is_name(&field.name),
                    "field `{name}`: expected a word that begins with a letter behind `{}.`",
                    register.name
                );
                ensure!(
                    !taken.contains(&name),
                    "field `{name}`: expected one field, register or command with this name"
                );
                taken.insert(name);
            }
        }
        for command in &self.commands {
            let Command { name, code, .. } = command;
            ensure!(
                *code >= CMD_USER_FIRST,
                "code {code:#06x} of `{name}`: expected the code of a user command, 0x0100 to 0xffff"
            );
        }
        Ok(())
    }

    /// The register of a name.
    pub fn register(&self, name: &str) -> Option<&Register> {
        self.registers.iter().find(|register| register.name == name)
    }

    /// The registers that can be read at any time, but for the one that tells the board's identity.
    pub fn readable(&self) -> impl Iterator<Item = &Register> {
        let is_shown = |register: &&Register| !(register.on_request || self.identity.is_some() && register.number == 0);
        self.registers.iter().filter(is_shown)
    }
}

impl Register {
    /// The bits that it can answer.
    fn width(&self) -> u32 {
        if self.number < REACHED {
            u64::BITS
        } else {
            WORD_BITS
        }
    }

    fn check(&self) -> anyhow::Result<()> {
        let mut used = 0;
        let unnamed = self.fields.iter().filter(|field| field.name.is_empty()).count();
        ensure!(unnamed <= 1, "register `{}`: {unnamed} fields without a name, expected at most 1", self.name);
        for field in &self.fields {
            let name = field.name_in(self);
            let (low, bits, width) = (field.low, field.bits(), self.width());
            ensure!(
                bits > 0 && low.checked_add(bits).is_some_and(|end| end <= width),
                "field `{name}`: {bits} bits from bit {low} on, expected 1 or more, within {width}"
            );
            let own = u64::MAX >> (u64::BITS - bits) << low;
            let free = format!("expected bits that no other field of `{}` has", self.name);
            ensure!(used & own == 0, "field `{name}`: {bits} bits from bit {low} on, {free}");
            used |= own;
            let (words, most) = (field.values.len(), field.range(bits).1 + 1);
            ensure!(
                i128::try_from(words).is_ok_and(|words| words <= most),
                "field `{name}`: {words} words in `values`, expected at most {most}, the numbers from 0 on that {} have",
                if field.signed { format!("{bits} bits with a sign") } else { format!("{bits} bits") }
            );
            let scale = field.scale.unwrap_or(1.0);
            ensure!(scale.is_finite() && scale != 0.0, "field `{name}`: scale {scale}, expected a number other than 0");
        }
        Ok(())
    }

    /// The code of the user command that reads it, or writes it.
    pub fn code(&self, writes: bool) -> anyhow::Result<u16> {
        let first = if writes { WRITE_REGISTER } else { READ_REGISTER };
        ensure!(
            self.number < REACHED,
            "number {} of register `{}`: expected 0 to 255, as user commands reach no other",
            self.number,
            self.name
        );
        Ok(first | self.number as u16)
    }

    /// What it says, with the word that was read.
    pub fn shown(&self, word: u64) -> impl Iterator<Item = Shown> + '_ {
        self.fields.iter().map(move |field| Shown {
            name: field.name_in(self),
            value: if word == NONE { Value::Null } else { field.value(word) },
            unit: field.unit.clone(),
            top: field.top,
        })
    }

    /// Names of the columns that `fadelink top` has of it.
    pub fn columns(&self) -> impl Iterator<Item = String> + '_ {
        self.fields.iter().filter(|field| field.top).map(|field| field.name_in(self))
    }
}

impl Field {
    /// How many bits it has.
    pub fn bits(&self) -> u32 {
        self.bits.unwrap_or(u32::BITS)
    }

    /// How many bits can be written of it.
    pub fn written_bits(&self) -> u32 {
        if self.is_whole {
            WORD_BITS
        } else {
            self.bits()
        }
    }

    /// The numbers that so many bits of it have.
    pub fn range(&self, bits: u32) -> (i128, i128) {
        let most = i128::from(u64::MAX >> (u64::BITS - bits));
        if self.signed {
            (-(most >> 1) - 1, most >> 1)
        } else {
            (0, most)
        }
    }

    /// Its name behind that of its register.
    pub fn name_in(&self, register: &Register) -> String {
        let point = if self.name.is_empty() { "" } else { "." };
        format!("{}{point}{}", register.name, self.name)
    }

    fn value(&self, word: u64) -> Value {
        let unused = u64::BITS - self.bits();
        let bits = word >> self.low << unused;
        let number = if self.signed { i128::from(bits as i64 >> unused) } else { i128::from(bits >> unused) };
        match (self.scale, usize::try_from(number).ok().and_then(|index| self.values.get(index))) {
            (_, Some(word)) => json!(word),
            (Some(scale), _) => number::scaled(number, scale),
            (None, None) => number::json(number),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> String {
        let text = format!("name = \"a board\"\n{text}");
        format!("{:#}", Names::parse(&text).map(drop).expect_err(&text))
    }

    /// A register of this number with these fields, each in a line.
    fn register(number: u32, fields: &str) -> String {
        let fields: String =
            fields.lines().map(|field| format!("[[register.field]]\n{}\n", field.replace("; ", "\n"))).collect();
        format!("[[register]]\nname = \"few\"\nnumber = {number}\n{fields}")
    }

    #[test]
    fn fields_that_cannot_be_are_refused() {
        for (number, fields, error) in [
            (1, "name = 'two words'", "field `few.two words`: expected a word that begins with a letter behind `few.`"),
            (1, "name = '1st'", "field `few.1st`: expected a word that begins with a letter"),
            (1, "name = 'a'; bits = 1\nname = 'a'; low = 1; bits = 1", "field `few.a`: expected one field, register or command with this name"),
            (1, "bits = 1\nlow = 1; bits = 1", "register `few`: 2 fields without a name, expected at most 1"),
            (1, "name = 'a'; bits = 4\nname = 'b'; low = 3; bits = 2", "field `few.b`: 2 bits from bit 3 on, expected bits that no other field of `few` has"),
            (1, "name = 'a'; bits = 64\nname = 'b'; low = 63; bits = 1", "field `few.b`: 1 bits from bit 63 on, expected bits that no other"),
            (1, "low = 60; bits = 5", "field `few`: 5 bits from bit 60 on, expected 1 or more, within 64"),
            (256, "low = 30; bits = 3", "field `few`: 3 bits from bit 30 on, expected 1 or more, within 32"),
            (1, "bits = 0", "field `few`: 0 bits from bit 0 on, expected 1 or more, within 64"),
            (1, "bits = 1; values = ['off', 'on', 'auto']", "field `few`: 3 words in `values`, expected at most 2, the numbers from 0 on that 1 bits have"),
            (1, "bits = 2; signed = true; values = ['a', 'b', 'c']", "field `few`: 3 words in `values`, expected at most 2, the numbers from 0 on that 2 bits with a sign have"),
            (1, "scale = 0", "field `few`: scale 0, expected a number other than 0"),
            (1, "scale = nan", "field `few`: scale NaN, expected a number other than 0"),
            (1, "scale = inf", "field `few`: scale inf, expected a number other than 0"),
        ] {
            let said = refused(&register(number, fields));
            assert!(said.contains(error), "{fields}: {said}");
        }
        let dotted = "[[command]]\nname = \"few.a\"\ncode = 0x400\n";
        let said = refused(&format!("{}{dotted}", register(1, "name = 'a'")));
        assert!(said.contains("field `few.a`: expected one field, register or command with this name"), "{said}");
    }

    #[test]
    fn fields_to_the_last_bit_and_word_are_taken() {
        for (number, fields) in [
            (1, "bits = 64"),
            (1, "name = 'a'; bits = 32\nname = 'b'; low = 32; bits = 32"),
            (1, "bits = 4\nname = 'state'; low = 4; bits = 1; values = ['off', 'on']"),
            (1, "bits = 2; signed = true; values = ['off', 'on']"),
            (u32::MAX, "bits = 32"),
            (256, ""),
        ] {
            Names::parse(&format!("name = \"a board\"\n{}", register(number, fields))).unwrap();
        }
    }

    #[test]
    fn numbers_of_64_bits_are_shown_as_they_are() {
        let shown = |fields: &str, word| {
            let names = Names::parse(&format!("name = \"a board\"\n{}", register(1, fields))).unwrap();
            let shown: Vec<_> =
                names.registers[0].shown(word).map(|shown| (shown.value.to_string(), shown.text())).collect();
            shown[0].clone()
        };
        let word = 0x4641_4445_3130_4701;
        for (fields, value, text) in [
            ("", "\"5062402520109827841\"", "5062402520109827841"),
            ("bits = 64", "\"5062402520109827841\"", "5062402520109827841"),
            ("bits = 64; signed = true", "\"5062402520109827841\"", "5062402520109827841"),
            ("bits = 64; scale = 1.0; unit = 's'", "\"5062402520109827841\"", "5062402520109827841 s"),
            ("bits = 63; low = 1; scale = 0.1", "\"253120126005491392\"", "253120126005491392"),
            ("bits = 32; scale = 0.5", "412623744.5", "412623744.5"),
            ("unit = 's'", "825247489", "825247489 s"),
        ] {
            assert_eq!(shown(fields, word), (value.into(), text.into()), "{fields}");
        }
    }
}
