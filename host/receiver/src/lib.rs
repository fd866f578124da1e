//! Receives every word that front-end boards (FEBs) send by FADE-10G and FADE v1.
//!
//! [`engine::Engine`] is the protocol: a frame goes in, actions come out. A [`backend::Backend`]
//! moves frames between the engine and the wire. [`Receiver`] runs both in a thread and hands each
//! FEB's data to its reader through a [`ring::Ring`]; or the kernel driver does all that
//! ([`Receiver::kernel`]), and nothing else changes:
//!
//! ```no_run
//! use std::time::Duration;
//! use fadelink_receiver::{backend::packet::Packet, FebConfig, Receiver};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let receiver = Receiver::spawn(Packet::open("eth1")?)?;
//! let mut feb = receiver.open("02:fa:de:00:00:01".parse()?, FebConfig::default())?;
//! feb.start()?;
//! while let Some(data) = feb.read(8192, Some(Duration::from_secs(1)))? {
//!     println!("{} bytes", data.len());
//!     let bytes = data.len();
//!     feb.release(bytes);
//! }
//! # Ok(())
//! # }
//! ```

pub mod abi;
mod against;
pub mod backend;
pub mod claim;
mod commons;
pub mod counters;
pub mod descriptors;
pub mod engine;
mod flow;
pub mod fork;
mod holder;
mod inquiry;
pub mod interface;
mod kernel;
pub mod kind;
mod loan;
mod locks;
mod mapping;
pub mod numbers;
mod receiver;
pub mod ring;
pub mod schedule;
pub mod sets;
pub mod shared;
mod sockopt;
mod source;
pub mod tcp;
mod tcp_info;
mod time_wait;
pub mod told;
pub mod udp;
mod user_space;
mod valid;
pub mod wake;
pub mod window;

pub use against::Against;
pub use engine::{CommandError, Confirm, FebConfig, Resumed, WrongField};
pub use holder::Holder;
pub use inquiry::{Inquiry, Question};
pub use kind::Kind;
pub use loan::{Loan, Pool};
pub use mapping::View;
pub use receiver::{FebHandle, Receiver};
pub use shared::Ending;
pub use source::{Commander, Error, DEFAULT_RETRIES, DEFAULT_TIMEOUT};
pub use valid::Valid;
