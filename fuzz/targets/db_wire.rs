//! Clients and databases send what they like. The first byte chooses a reader, the rest is for it: none may panic, and what a reader
//! says it has used must be there.
#![no_main]

use danki_db_wire::mysql::{self, AuthSwitch, Awaits, ErrPacket, Greeting, LoginResponse, OkPacket, Reply};
use danki_db_wire::postgres::{self, ErrorFields, Startup};
use danki_db_wire::sql::{self, Dialect};
use libfuzzer_sys::fuzz_target;

const AWAITED: [Awaits; 5] = [Awaits::Results, Awaits::Rows, Awaits::Prepared, Awaits::Simple, Awaits::Text];

fuzz_target!(|data: &[u8]| {
    let Some((&choice, data)) = data.split_first() else { return };
    match choice % 6 {
        0 => {
            let _read = (LoginResponse::parse(data), Greeting::parse(data), AuthSwitch::parse(data), ErrPacket::parse(data));
            let _read = LoginResponse::parse_change_user(data, u32::MAX);
        }
        1 => reply(choice, data),
        2 => {
            if let Ok(Some((_, length))) = Startup::parse(data) {
                assert!(length <= data.len(), "a startup packet ends within what was read");
            }
            let _read = (postgres::parse_parts(data), postgres::bind_names(data), postgres::close_target(data));
            let _read = (ErrorFields::parse(data), postgres::rename_bind(&mut Vec::new(), data, b"danki_1"));
        }
        3 => drop(sql::mysql(data)),
        4 => drop(sql::postgres(data)),
        _ => {
            let (mysql, postgres) = (Dialect::MySql, Dialect::Postgres);
            assert!(sql::digest(data, mysql, 64).len() <= 64 && sql::digest(data, postgres, 64).len() <= 64);
            let mut types = Vec::new();
            let _built = mysql::with_types(data, u16::from(choice), &mut types);
        }
    }
});

fn reply(choice: u8, data: &[u8]) {
    let capabilities = if choice & 0x80 == 0 { 0 } else { u32::MAX };
    let mut reply = Reply::new(AWAITED[usize::from(choice / 6) % AWAITED.len()], capabilities);
    let mut used = 0;
    while let Ok(part) = reply.next(&data[used..]) {
        if let mysql::Part::Ok(payload) = part
            && let Some(ok) = OkPacket::parse(payload, capabilities)
        {
            let _all = (ok.tracked().count(), ok.rebuild(0), ok.rebuild(u32::MAX));
        }
        if part.length() == 0 {
            return;
        }
        used += part.length();
        assert!(used <= data.len(), "a part ends within what was read");
    }
}
