//! What users set of the client: the way to the brokers, such as TLS and passwords. All clients of a program have the same.

use std::fmt;
use std::path::Path;
use std::sync::OnceLock;

use rdkafka::config::ClientConfig;
use rdkafka::error::KafkaError;

/// ClientSettings of the way to the brokers, beside those that begin with [`PREFIXES`]. All others decide what is kept and in which
/// order, and are this program's.
const ALLOWED: [&str; 11] = [
    "security.protocol",
    "enable.ssl.certificate.verification",
    "enable.sasl.oauthbearer.unsecure.jwt",
    "broker.address.family",
    "broker.address.ttl",
    "client.dns.lookup",
    "client.rack",
    "connections.max.idle.ms",
    "socket.keepalive.enable",
    "socket.receive.buffer.bytes",
    "socket.send.buffer.bytes",
];
const PREFIXES: [&str; 2] = ["sasl.", "ssl."];
/// Parts of names whose values are nobody else's business.
const SECRETS: [&str; 5] = ["password", "secret", "key.pem", "oauthbearer.config", "assertion"];

/// Ends of names whose values are paths of files.
const FILES: [&str; 3] = [".location", ".keytab", ".file"];

/// Of the program.
static SETTINGS: OnceLock<ClientSettings> = OnceLock::new();

/// See the module.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct ClientSettings(Vec<(String, String)>);

/// The names alone: there are passwords among the values.
impl fmt::Debug for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

fn is_secret(name: &str) -> bool {
    SECRETS.iter().any(|part| name.contains(part))
}

/// Name and value; errors never have the value.
fn parse(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected KEY=VALUE")?;
    let (name, value) = (name.trim(), value.trim());
    if !ALLOWED.contains(&name) && !PREFIXES.iter().any(|prefix| name.starts_with(prefix)) {
        let what = "expected a setting of the way to the brokers: security.protocol, sasl.*, ssl.* and a few more";
        return Err(format!("`{name}`: {what} (docs/sinks.md); all others are set by this program"));
    }
    ClientConfig::new().set(name, value).create_native_config().map_err(|error| match error {
        KafkaError::ClientConfig(_, what, ..) if !is_secret(name) => format!("`{name}`: {what}"),
        _ => format!("`{name}`: this value cannot be set"),
    })?;
    Ok((name.to_owned(), value.to_owned()))
}

impl ClientSettings {
    /// Adds `KEY=VALUE` of a command line, which all users of the computer can read.
    ///
    /// # Errors
    /// It is not one that may be set so.
    pub fn add(&mut self, text: &str) -> Result<(), String> {
        let (name, value) = parse(text)?;
        if is_secret(&name) {
            return Err(format!(
                "`{name}`: expected it in a file (--kafka-config-file): other users can read the command line"
            ));
        }
        self.0.push((name, value));
        Ok(())
    }

    /// Adds those of a file: a line for each, as `KEY=VALUE`; lines that begin with `#` are comments.
    ///
    /// # Errors
    /// It cannot be read, or a line is wrong.
    pub fn read(&mut self, path: &Path) -> Result<(), String> {
        let text = crate::settings::read(path).map_err(|error| error.to_string())?;
        for (line, number) in text.lines().map(str::trim).zip(1..) {
            if !line.is_empty() && !line.starts_with('#') {
                self.0.push(parse(line).map_err(|error| format!("line {number}: {error}"))?);
            }
        }
        Ok(())
    }

    /// Paths of the files that they name, such as certificates.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let named = self.0.iter().filter(|(name, _)| FILES.iter().any(|end| name.ends_with(end)));
        named.map(|(_, path)| Path::new(path))
    }

    /// All clients have them from now on. Only the first call counts.
    pub fn begin(self) {
        let _ = SETTINGS.set(self);
    }
}

/// Those of the program.
pub(super) fn of_program() -> &'static [(String, String)] {
    SETTINGS.get().map_or(&[], |settings| &settings.0)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_way_to_the_brokers_alone_is_set() {
        let mut settings = ClientSettings::default();
        settings.add("security.protocol=SASL_SSL").unwrap();
        settings.add("sasl.username = ann").unwrap();
        assert_eq!(settings.0[1], ("sasl.username".into(), "ann".into()));
        for (text, told) in [
            ("acks=1", "`acks`: expected a setting of the way to the brokers"),
            ("enable.idempotence=false", "`enable.idempotence`: expected a setting"),
            ("enable.partition.eof=false", "`enable.partition.eof`: expected a setting"),
            ("group.id=x", "`group.id`: expected a setting"),
            ("security.protocol", "expected KEY=VALUE"),
            ("security.protocol=rot13", "`security.protocol`: "),
            ("ssl.nothing=1", "`ssl.nothing`: No such configuration property"),
            ("sasl.password=hunter2", "`sasl.password`: expected it in a file"),
        ] {
            let error = settings.add(text).unwrap_err();
            assert!(error.contains(told) && !error.contains("hunter2"), "{text}: {error}");
        }
    }

    #[test]
    fn files_have_passwords_and_nobody_is_told_them() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kafka.properties");
        fs::write(&path, "# the lab's\nsasl.password=hunter2\n\n sasl.mechanism=PLAIN\n").unwrap();
        let mut settings = ClientSettings::default();
        settings.read(&path).unwrap();
        assert_eq!(settings.0[0].1, "hunter2");
        assert_eq!(format!("{settings:?}"), r#"["sasl.password", "sasl.mechanism"]"#);
        fs::write(&path, "sasl.mechanism=PLAIN\nacks=hunter2").unwrap();
        let error = settings.read(&path).unwrap_err();
        assert!(error.contains("line 2: `acks`") && !error.contains("hunter2"), "{error}");
    }
}
