//! Where in a script a line stands, and how an id says it.

use std::fmt;
use std::str::FromStr;

use crate::ledger::Lane;

/// A place in a script; as text the middle of an id, such as `main-t2-r0`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallPlace {
    /// Whose line.
    pub lane: Lane,
    /// Turn of the scenario, from 1; 0 for none.
    pub turn: u64,
    /// Which child of the turn, from 0.
    pub child: u64,
    /// Which line of the list, from 0.
    pub entry: u64,
}

impl fmt::Display for CallPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-t{}", self.lane.word(), self.turn)?;
        if self.lane == Lane::Child {
            write!(f, "-k{}", self.child)?;
        }
        write!(f, "-r{}", self.entry)
    }
}

/// An id that no script of ours made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("no place in a script")]
pub struct NotOurs;

impl FromStr for CallPlace {
    type Err = NotOurs;

    /// Reads the place out of a call's id, such as `call_main-t2-r0-c0`.
    ///
    /// ```
    /// use hermes_lab::model::placed::CallPlace;
    /// let place: CallPlace = "call_child-t2-k1-r0-c3".parse().unwrap();
    /// assert_eq!((place.turn, place.child, place.entry), (2, 1, 0));
    /// assert!("call_abc".parse::<CallPlace>().is_err());
    /// ```
    fn from_str(id: &str) -> Result<Self, NotOurs> {
        let id = id.split('|').next().unwrap_or(id);
        let rest = id.rsplit_once('_').map_or(id, |(_, rest)| rest);
        let mut parts = rest.split('-');
        let word = parts.next().ok_or(NotOurs)?;
        let lane = Lane::ALL.into_iter().find(|lane| lane.word() == word).ok_or(NotOurs)?;
        let mut place = Self { lane, turn: 0, child: 0, entry: 0 };
        let mut seen = false;
        for part in parts {
            let (kind, number) = part.split_at_checked(1).ok_or(NotOurs)?;
            let number: u64 = number.parse().map_err(|_| NotOurs)?;
            match kind {
                "t" => place.turn = number,
                "k" => place.child = number,
                "r" => (place.entry, seen) = (number, true),
                "c" | "x" => {}
                _ => return Err(NotOurs),
            }
        }
        if seen { Ok(place) } else { Err(NotOurs) }
    }
}
