//! Tests of the commands as processes. They are one test program, because each program links the whole
//! library.

mod process;
mod support;

mod attend;
mod attention;
mod average;
mod classify;
mod command_line;
mod compare;
mod demo;
mod deploy;
mod device;
mod disk;
#[cfg(target_os = "linux")]
mod distributed;
mod doctor;
mod evaluate;
mod explain;
mod explain_states;
mod export;
mod finetune;
mod flags;
mod generate;
mod import;
mod integrity;
mod limits;
mod measure;
mod mechanisms;
mod models;
mod outputs;
mod pack;
mod quantize;
mod serve;
mod shortlist;
mod train;
mod translate;
mod vocab;
