//! Files: [`durable`] writes them atomically, [`output`] those that a user asked for, [`reserve`] keeps room for one; [`seal`] says which ones belong
//! together; [`weights`] are matrices by name, as safetensors; [`formats`] reads the models of other projects.

pub mod unfinished;

pub mod durable;
pub mod output;
pub mod reserve;

pub mod weights;

pub mod seal;

pub mod formats;
