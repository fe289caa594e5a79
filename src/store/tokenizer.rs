//! The `cjk_unicode61` tokenizer of FTS5: unicode61 first, then the pairs of [`super::bigram`].
//!
//! FTS5 takes a tokenizer through its C interface only, so this one file speaks it. [`register`] is called once per
//! connection, before any statement names the third index. Never: a panic across the C border, a rule of its own.
#![expect(unsafe_code, reason = "FTS5 takes tokenizers through C function tables only")]

use std::ffi::{CStr, c_char, c_int, c_void};
use std::ptr;

use rusqlite::{Connection, ffi};

use super::bigram;

/// Name under which the tokenizer is registered.
const NAME: &CStr = c"cjk_unicode61";

/// unicode61 as FTS5 handed it out: its functions and their context.
struct Base {
    table: ffi::fts5_tokenizer,
    context: *mut c_void,
}

/// One tokenizer: unicode61's functions and its instance.
struct Instance {
    table: ffi::fts5_tokenizer,
    base: *mut ffi::Fts5Tokenizer,
}

type Emit = unsafe extern "C" fn(*mut c_void, c_int, *const c_char, c_int, c_int, c_int) -> c_int;

/// What the token callback of unicode61 needs: the text, and whom to pass the pieces to.
struct Pass<'a> {
    text: &'a [u8],
    context: *mut c_void,
    emit: Emit,
}

/// Makes `cjk_unicode61` known to a connection.
///
/// # Errors
/// When the library was built without FTS5, or runs out of memory.
pub fn register(connection: &Connection) -> rusqlite::Result<()> {
    // SAFETY: the handle is live as long as `connection`, and nothing else uses it during this call.
    let code = unsafe { register_raw(connection.handle()) };
    if code == ffi::SQLITE_OK {
        Ok(())
    } else {
        let error = ffi::Error::new(code);
        Err(rusqlite::Error::SqliteFailure(error, Some("cannot register cjk_unicode61".to_owned())))
    }
}

/// # Safety
/// `db` must be an open connection that no other thread uses meanwhile.
unsafe fn register_raw(db: *mut ffi::sqlite3) -> c_int {
    // SAFETY: `api` comes from FTS5 itself and stays valid as long as the connection; every pointer handed over lives
    // until the call returns, except the boxed base, which FTS5 gives back to `drop_base`.
    unsafe {
        let Some(api) = api_of(db) else { return ffi::SQLITE_ERROR };
        let (Some(find), Some(create)) = ((*api).xFindTokenizer, (*api).xCreateTokenizer) else {
            return ffi::SQLITE_ERROR;
        };
        let mut table = ffi::fts5_tokenizer { xCreate: None, xDelete: None, xTokenize: None };
        let mut context = ptr::null_mut();
        let code = find(api, c"unicode61".as_ptr(), &raw mut context, &raw mut table);
        if code != ffi::SQLITE_OK {
            return code;
        }
        let base = Box::into_raw(Box::new(Base { table, context }));
        let mut own = ffi::fts5_tokenizer {
            xCreate: Some(create_instance),
            xDelete: Some(delete_instance),
            xTokenize: Some(tokenize),
        };
        create(api, NAME.as_ptr(), base.cast(), &raw mut own, Some(drop_base))
    }
}

/// The function table of FTS5, asked for in the documented way: `SELECT fts5(?1)` with a pointer of a named type.
///
/// # Safety
/// As for [`register_raw`].
unsafe fn api_of(db: *mut ffi::sqlite3) -> Option<*mut ffi::fts5_api> {
    let mut api: *mut ffi::fts5_api = ptr::null_mut();
    let mut statement = ptr::null_mut();
    // SAFETY: the statement is finalised before `api`'s address goes out of scope.
    unsafe {
        let sql = c"SELECT fts5(?1)";
        if ffi::sqlite3_prepare_v2(db, sql.as_ptr(), -1, &raw mut statement, ptr::null_mut())
            != ffi::SQLITE_OK
        {
            return None;
        }
        let place = (&raw mut api).cast::<c_void>();
        ffi::sqlite3_bind_pointer(statement, 1, place, c"fts5_api_ptr".as_ptr(), None);
        ffi::sqlite3_step(statement);
        ffi::sqlite3_finalize(statement);
    }
    (!api.is_null()).then_some(api)
}

unsafe extern "C" fn drop_base(base: *mut c_void) {
    // SAFETY: FTS5 gives back exactly the pointer of `register_raw`, once.
    drop(unsafe { Box::from_raw(base.cast::<Base>()) });
}

unsafe extern "C" fn create_instance(
    context: *mut c_void,
    arguments: *mut *const c_char,
    count: c_int,
    out: *mut *mut ffi::Fts5Tokenizer,
) -> c_int {
    // SAFETY: `context` is the boxed base of `register_raw`; the arguments are passed on untouched.
    unsafe {
        let base = &*context.cast::<Base>();
        let Some(create) = base.table.xCreate else { return ffi::SQLITE_ERROR };
        let mut instance = ptr::null_mut();
        let code = create(base.context, arguments, count, &raw mut instance);
        if code == ffi::SQLITE_OK {
            let own = Box::new(Instance { table: base.table, base: instance });
            *out = Box::into_raw(own).cast();
        }
        code
    }
}

unsafe extern "C" fn delete_instance(instance: *mut ffi::Fts5Tokenizer) {
    // SAFETY: FTS5 deletes what `create_instance` gave out, once.
    unsafe {
        let own = Box::from_raw(instance.cast::<Instance>());
        if let Some(delete) = own.table.xDelete {
            delete(own.base);
        }
    }
}

unsafe extern "C" fn tokenize(
    instance: *mut ffi::Fts5Tokenizer,
    context: *mut c_void,
    flags: c_int,
    text: *const c_char,
    length: c_int,
    emit: Option<Emit>,
) -> c_int {
    // SAFETY: FTS5 promises `length` bytes at `text` and a live instance; `pass` outlives the inner call.
    unsafe {
        let own = &*instance.cast::<Instance>();
        let (Some(inner), Some(emit)) = (own.table.xTokenize, emit) else { return ffi::SQLITE_ERROR };
        let bytes = match usize::try_from(length) {
            Ok(length) if !text.is_null() => std::slice::from_raw_parts(text.cast::<u8>(), length),
            _ => &[],
        };
        let mut pass = Pass { text: bytes, context, emit };
        inner(own.base, (&raw mut pass).cast(), flags, text, length, Some(pass_token))
    }
}

unsafe extern "C" fn pass_token(
    pass: *mut c_void,
    flags: c_int,
    token: *const c_char,
    length: c_int,
    start: c_int,
    end: c_int,
) -> c_int {
    // SAFETY: `pass` is the one of `tokenize`; unicode61 promises `length` bytes at `token`.
    unsafe {
        let pass = &*pass.cast::<Pass<'_>>();
        let bytes = match usize::try_from(length) {
            Ok(length) if !token.is_null() => std::slice::from_raw_parts(token.cast::<u8>(), length),
            _ => &[],
        };
        let range = usize::try_from(start).ok().zip(usize::try_from(end).ok());
        let source = range.and_then(|(start, end)| pass.text.get(start..end));
        let (Ok(text), Some(Ok(source))) = (std::str::from_utf8(bytes), source.map(std::str::from_utf8))
        else {
            return (pass.emit)(pass.context, flags, token, length, start, end);
        };
        let mut code = ffi::SQLITE_OK;
        bigram::cut(text, source, range.map_or(0, |(start, _)| start), |piece| {
            // Lengths and places lie within those that came as `c_int`.
            let number = |n: usize| c_int::try_from(n).unwrap_or(c_int::MAX);
            code = (pass.emit)(
                pass.context,
                flags,
                piece.token.as_ptr().cast(),
                number(piece.token.len()),
                number(piece.place.start),
                number(piece.place.end),
            );
            code == ffi::SQLITE_OK
        });
        code
    }
}
