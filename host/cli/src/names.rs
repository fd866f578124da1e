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
const WRITE_REGISTER: u16 = 0x0200;
/// The answer of a register or a command that is not there.
pub const NONE: u64 = u64::MAX;
/// Registers that user commands reach.
const REACHED: u32 = 0x100;

/// Where the names are.
#[derive(clap::Args)]
pub struct Args {
    /// Names of the board's registers and user commands, a TOML file [default: those of the example boards]
    #[arg(long, value_name = "FILE")]
    registers: Option<PathBuf>,
}

impl Args {
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
        let text = std::fs::read_to_string(path).with_context(|| format!("cannot read {shown}"))?;
        Names::parse(&text).with_context(|| format!("{shown} does not describe registers (docs/boards.md tells how)"))
    }

    /// The names in the text of a description.
    pub fn parse(text: &str) -> anyhow::Result<Names> {
        let mut names: Names = toml::from_str(text).map_err(|error| anyhow!("{}", error.to_string().trim_end()))?;
        for register in &mut names.registers {
            if register.fields.is_empty() {
                register.fields.push(Field::default());
            }
        }
        names.check()?;
        Ok(names)
    }

    fn check(&self) -> anyhow::Result<()> {
        let mut taken = HashSet::new();
        for name in self
            .registers
            .iter()
            .map(|register| &register.name)
            .chain(self.commands.iter().map(|command| &command.name))
        {
            ensure!(is_name(name), "name `{name}`: expected a word that begins with a letter");
            ensure!(taken.insert(name), "name `{name}`: expected one register or command with this name");
        }
        for command in &self.commands {
            let Command { name, code, .. } = command;
            ensure!(
                *code >= CMD_USER_FIRST,
                "code {code:#06x} of `{name}`: expected the code of a user command, 0x0100 to 0xffff"
            );
        }
        for register in &self.registers {
            for field in &register.fields {
                let (low, bits) = (field.low, field.bits());
                ensure!(
                    bits > 0 && low.checked_add(bits).is_some_and(|end| end <= u64::BITS),
                    "field `{}`: {bits} bits from bit {low} on, expected 1 or more, within 64",
                    field.name_in(register)
                );
            }
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
            (Some(scale), _) => json!(number as f64 * scale),
            (None, None) if self.signed => json!(number as i64),
            (None, None) => number::json(number as u64),
        }
    }
}
