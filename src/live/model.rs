//! The line to a provider as a model that scenarios are played with.

use std::cell::RefCell;
use std::rc::Rc;

use crate::live::line::Line;
use crate::model::{Ask, Model, ModelError, Player, Reply};

/// A real model in one run.
pub(super) struct LiveModel {
    line: Rc<RefCell<Line>>,
    run: String,
}

impl LiveModel {
    pub(super) fn new(line: &Rc<RefCell<Line>>, run: &str) -> Self {
        Self { line: line.clone(), run: run.to_owned() }
    }
}

impl Model for LiveModel {
    fn reply(&mut self, ask: &Ask<'_>) -> Result<Reply, ModelError> {
        self.line.borrow_mut().ask(&self.run, ask)
    }
}

impl Player for LiveModel {}
