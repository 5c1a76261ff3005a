//! The functions that JavaScript calls.
//!
//! ```text
//! heedful_request(bytes)     a buffer for `METHOD PATH`, a newline and the body
//! heedful_answer()           answers the request and returns a status of HTTP
//! heedful_response()         the address of the response, a JSON text
//! heedful_response_length()  its length
//! ```
//!
//! A panic ends `heedful_answer` with a trap, as does a lack of memory. The hook has then written the message
//! as response; JavaScript reads it and instantiates the module again, because the old instance may hold a
//! half-changed state.

use std::panic;
use std::sync::{Mutex, Once, PoisonError};

use crate::session::{Response, Session};

static SESSION: Mutex<Option<Session>> = Mutex::new(None);
static REQUEST: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static RESPONSE: Mutex<Vec<u8>> = Mutex::new(Vec::new());

fn set_response(body: Vec<u8>) {
    *RESPONSE.lock().unwrap_or_else(PoisonError::into_inner) = body;
}

fn report_panics() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        panic::set_hook(Box::new(|found| {
            let message = format!("a bug in heedful, please report it: {found}");
            set_response(Response::error(500, &message).body);
        }));
    });
}

#[unsafe(no_mangle)]
extern "C" fn heedful_request(bytes: usize) -> *mut u8 {
    report_panics();
    set_response(Vec::new());
    let mut request = REQUEST.lock().unwrap_or_else(PoisonError::into_inner);
    *request = vec![0; bytes];
    request.as_mut_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn heedful_answer() -> u32 {
    let mut request = std::mem::take(&mut *REQUEST.lock().unwrap_or_else(PoisonError::into_inner));
    let line = request.iter().position(|&byte| byte == b'\n').unwrap_or(request.len());
    let body = request.split_off((line + 1).min(request.len()));
    let target = String::from_utf8_lossy(&request[..line]);
    let mut session = SESSION.lock().unwrap_or_else(PoisonError::into_inner);
    let Response { status, body } = session.get_or_insert_default().answer(&target, body);
    set_response(body);
    status.into()
}

#[unsafe(no_mangle)]
extern "C" fn heedful_response() -> *const u8 {
    RESPONSE.lock().unwrap_or_else(PoisonError::into_inner).as_ptr()
}

#[unsafe(no_mangle)]
extern "C" fn heedful_response_length() -> usize {
    RESPONSE.lock().unwrap_or_else(PoisonError::into_inner).len()
}

/// The seeds of hash tables in `tokenizers`: constants, since all input comes from the user of the page.
/// Nothing else draws entropy; random numbers of heedful have seeds of their own.
#[unsafe(no_mangle)]
fn __getrandom_v03_custom(start: *mut u8, bytes: usize) -> Result<(), getrandom::Error> {
    for at in 0..bytes {
        // SAFETY: getrandom passes a buffer of this size, which it owns.
        unsafe { start.add(at).write(at as u8) };
    }
    Ok(())
}
