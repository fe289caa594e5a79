//! The seams: everything that varies reaches the lab through here.
//!
//! Time, randomness, files and commands are values handed to constructors; nothing in the rooms above asks the
//! operating system. The default world is simulated and seeded. `DirFiles` is the one place where a real directory
//! is touched, `process` the one where a real program is started.
//!
//! Never: an ambient clock, an unseeded generator, a listing in the order of the file system.

pub mod clock;
pub mod dir_files;
pub mod faults;
pub mod files;
pub mod process;
pub mod streams;
pub mod terminal;

pub use clock::{Clock, Millis};
pub use dir_files::DirFiles;
pub use faults::Faults;
pub use files::{EntryKind, FileError, FileMeta, Files, MemFiles, normalize};
pub use process::{Process, ProcessSpec};
pub use streams::Streams;
pub use terminal::Terminal;
