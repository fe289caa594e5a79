//! Real programs: started in a clean environment, spoken to line by line, and ended with all that they started.
//!
//! The one place of the lab that starts a process. A [`Process`] gets only the environment that it is given, so no key
//! of the person at the keyboard reaches it by accident. Whoever drops it ends it: first its process group, then, where
//! the system shows environments, whatever else carries its mark.
//!
//! Never: a shell in between, an inherited variable.
#![expect(clippy::disallowed_methods, reason = "this is the seam behind which real programs run")]

use std::io::{self, BufRead as _, Write as _};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

/// Variable that marks a process and everything that it starts.
const MARK: &str = "HERMES_LAB_PROCESS";
/// Tells the processes of one lab apart: none may take another's children for its own.
static COUNT: AtomicU64 = AtomicU64::new(0);
/// Longest line that is kept of what a program prints, in bytes.
const LINE_BYTES_MAX: usize = 4 << 20;
/// Time that a program gets to end when it is asked to.
const POLITE: Duration = Duration::from_secs(3);
/// Time between two looks at whether a program has ended.
const LOOK: Duration = Duration::from_millis(20);

/// What to start.
#[derive(Debug, Clone)]
pub struct ProcessSpec {
    /// Program and arguments.
    pub command: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, String)>,
    /// Directory that it runs in.
    pub directory: PathBuf,
}

/// Where a line came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stream {
    /// Standard output.
    Out,
    /// Standard error.
    Err,
}

/// A running program.
#[derive(Debug)]
pub struct Process {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<(Stream, String)>,
    mark: String,
}

impl Process {
    /// Starts a program.
    ///
    /// # Errors
    /// When there is no command, or the system cannot start it.
    pub fn start(spec: &ProcessSpec) -> io::Result<Self> {
        let Some((program, arguments)) = spec.command.split_first() else {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no command"));
        };
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let mark = format!("{}-{number}", std::process::id());
        let mut command = Command::new(program);
        command
            .args(arguments)
            .env_clear()
            .envs(spec.environment.iter().map(|(name, value)| (name, value)))
            .env(MARK, &mark)
            .current_dir(&spec.directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn()?;
        let (sender, lines) = mpsc::channel();
        if let Some(out) = child.stdout.take() {
            read_lines(Stream::Out, out, sender.clone());
        }
        if let Some(err) = child.stderr.take() {
            read_lines(Stream::Err, err, sender);
        }
        let input = child.stdin.take();
        Ok(Self { child, input, lines, mark })
    }

    /// Writes one line to its standard input.
    ///
    /// # Errors
    /// When it no longer reads.
    pub fn write_line(&mut self, line: &str) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(line.as_bytes())?;
        input.write_all(b"\n")?;
        input.flush()
    }

    /// Closes its standard input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// The next line that it prints; `None` when none came in time. A program that has closed both streams keeps its
    /// listener waiting as well, so that whoever counts the time counts it right.
    pub fn next_line(&self, within: Duration) -> Option<(Stream, String)> {
        match self.lines.recv_timeout(within) {
            Ok(line) => Some(line),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => {
                pause(within);
                None
            }
        }
    }

    /// Waits for its end; `None` when it has not ended in time. Exit codes of signals are -1.
    pub fn wait(&mut self, within: Duration) -> Option<i32> {
        let mut waited = Duration::ZERO;
        loop {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status.code().unwrap_or(-1));
            }
            if waited >= within {
                return None;
            }
            pause(LOOK);
            waited += LOOK;
        }
    }

    /// Ends it and everything that it started.
    pub fn end(&mut self) {
        self.close_input();
        if self.wait(Duration::ZERO).is_none() {
            signal_group(&self.child, false);
            if self.wait(POLITE).is_none() {
                signal_group(&self.child, true);
                let _ = self.child.kill();
                let _ = self.child.wait();
            }
        }
        // Whatever stayed behind in the group, or left it.
        signal_group(&self.child, true);
        end_marked(&self.mark);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Lets real time pass.
pub fn pause(time: Duration) {
    std::thread::sleep(time);
}

fn read_lines(
    stream: Stream,
    source: impl io::Read + Send + 'static,
    sender: mpsc::Sender<(Stream, String)>,
) {
    std::thread::spawn(move || {
        let mut source = io::BufReader::new(source);
        let mut line = Vec::new();
        loop {
            line.clear();
            let limit = LINE_BYTES_MAX as u64;
            match io::Read::take(&mut source, limit).read_until(b'\n', &mut line) {
                Ok(0) | Err(_) => return,
                Ok(_) => {}
            }
            let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
            if sender.send((stream, text)).is_err() {
                return;
            }
        }
    });
}

#[cfg(unix)]
fn signal_group(child: &Child, hard: bool) {
    use rustix::process::{Pid, Signal, kill_process_group};
    let signal = if hard { Signal::KILL } else { Signal::TERM };
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        // A group without processes is no fault.
        let _ = kill_process_group(group, signal);
    }
}

#[cfg(not(unix))]
fn signal_group(_: &Child, _: bool) {}

/// Kills processes whose environment carries the mark.
#[cfg(target_os = "linux")]
fn end_marked(mark: &str) {
    use rustix::process::{Pid, Signal, kill_process};
    let wanted = format!("{MARK}={mark}");
    let Ok(entries) = std::fs::read_dir("/proc") else { return };
    for entry in entries.flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse::<i32>().ok()) else { continue };
        let Ok(environment) = std::fs::read(entry.path().join("environ")) else { continue };
        if environment.split(|byte| *byte == 0).any(|variable| variable == wanted.as_bytes())
            && let Some(process) = Pid::from_raw(id)
        {
            let _ = kill_process(process, Signal::KILL);
        }
    }
}

#[cfg(not(target_os = "linux"))]
fn end_marked(_: &str) {}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn shell(script: &str) -> Process {
        Process::start(&ProcessSpec {
            command: vec!["/bin/sh".to_owned(), "-c".to_owned(), script.to_owned()],
            environment: vec![("PATH".to_owned(), "/usr/bin:/bin".to_owned())],
            directory: PathBuf::from("/"),
        })
        .expect("a shell starts")
    }

    const SOON: Duration = Duration::from_secs(10);

    #[test]
    fn a_program_is_spoken_to_line_by_line() {
        let mut process = shell("read x; echo \"got $x\"; echo bad >&2; exit 3");
        process.write_line("it").unwrap();
        let mut lines: Vec<_> = (0..2).filter_map(|_| process.next_line(SOON)).collect();
        lines.sort_by_key(|(stream, _)| *stream == Stream::Err);
        assert_eq!(lines, [(Stream::Out, "got it".to_owned()), (Stream::Err, "bad".to_owned())]);
        assert_eq!(process.wait(SOON), Some(3));
    }

    #[test]
    fn only_the_given_environment_is_handed_over() {
        let process = shell("env | grep -c '^HOME=\\|^USER='");
        assert_eq!(process.next_line(SOON), Some((Stream::Out, "0".to_owned())));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_a_program_left_behind_in_a_session_of_its_own_is_ended_with_it() {
        let mut process = shell("setsid sleep 600 >/dev/null 2>&1 & echo $!");
        let (_, id) = process.next_line(SOON).unwrap();
        let alive = || std::path::Path::new("/proc").join(&id).join("stat").exists();
        process.wait(SOON);
        assert!(alive());
        process.end();
        for _ in 0..500 {
            if !alive() {
                return;
            }
            pause(LOOK);
        }
        panic!("process {id} outlived its driver");
    }
}
