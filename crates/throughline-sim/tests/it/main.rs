//! Integration tests: the simulated backend as its clients see it, over real HTTP.

mod client;
mod recording;
mod scripts;
mod seals;
mod state;
mod strictness;
mod talk;
