//! What a user says of boards: with the options of `fadelink receive` and `fadelink build`, and in the tables of an experiment
//! file. Each kind of board has one description for both. A field that several kinds have stands in each of them: serde finds unknown
//! fields, and the place of a wrong one, only in tables that are not put together from parts.

mod crates;
mod fade;
pub mod fields;
mod group;
mod kinds;
mod tcp;
mod threads;
mod udp;
mod waiting;

pub use crates::Crates;
#[cfg(feature = "kafka")]
pub use crates::{check_window, JoinBy};
pub use fade::Fade;
pub use fields::ConfirmAt;
pub use group::{Common, GroupSettings};
pub use kinds::Kind;
pub use tcp::Tcp;
pub use threads::Threads;
pub use udp::Udp;
pub use waiting::{Look, Waiting};
