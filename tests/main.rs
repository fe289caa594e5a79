//! One integration binary; one module per subject.

mod vectors;
