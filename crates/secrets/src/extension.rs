//! The Extensions API, 2020-01-01: register for INVOKE and SHUTDOWN, then wait for one after the other. The wait has no deadline, as
//! the whole machine may be paused in it for hours.

use crate::error::Error;
use crate::json::push_member;
use crate::upstream::{Answer, read_answer};
use serde::Deserialize;
use std::io::{self, Write};
use std::net::TcpStream;

/// The name that AWS's extension has; the platform insists on that of the file.
pub const NAME: &str = "AWSParametersAndSecretsLambdaExtension";

/// A registered extension.
pub struct Extension {
    api: String,
    identifier: String,
    stream: TcpStream,
}

/// What `next` brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Turn {
    /// An invocation begins.
    Invoke,
    /// The environment ends.
    Shutdown,
}

impl Extension {
    /// Registers.
    pub fn register(api: &str, name: &str) -> Result<Extension, Error> {
        let failed = |why: String| Error::Extension { what: "cannot register as an extension", why };
        let mut stream = TcpStream::connect(api).map_err(|error| failed(format!("{api}: {error}")))?;
        let body = r#"{"events":["SHUTDOWN","INVOKE"]}"#;
        let head = format!(
            "POST /2020-01-01/extension/register HTTP/1.1\r\nHost: {api}\r\nLambda-Extension-Name: {name}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        let answer =
            exchange(&mut stream, &format!("{head}{body}")).map_err(|error| failed(error.to_string()))?;
        if answer.status != 200 || answer.identifier.is_empty() {
            return Err(failed(format!(
                "status {}: {}",
                answer.status,
                String::from_utf8_lossy(&answer.body)
            )));
        }
        Ok(Extension { api: api.to_owned(), identifier: answer.identifier, stream })
    }

    /// Says that we are done with the last turn, and waits for the next.
    pub fn next_turn(&mut self) -> Result<Turn, Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Next {
            event_type: String,
        }
        let failed = |why: String| Error::Extension { what: "cannot get the next event", why };
        let request = format!(
            "GET /2020-01-01/extension/event/next HTTP/1.1\r\nHost: {}\r\nLambda-Extension-Identifier: {}\r\n\r\n",
            self.api, self.identifier
        );
        let answer = exchange(&mut self.stream, &request).map_err(|error| failed(error.to_string()))?;
        let text = || String::from_utf8_lossy(&answer.body).into_owned();
        if answer.status != 200 {
            return Err(failed(format!("status {}: {}", answer.status, text())));
        }
        match serde_json::from_slice::<Next>(&answer.body).map(|next| next.event_type) {
            Ok(kind) if kind == "INVOKE" => Ok(Turn::Invoke),
            Ok(kind) if kind == "SHUTDOWN" => Ok(Turn::Shutdown),
            _ => Err(failed(format!("an unknown event: {}", text()))),
        }
    }

    /// Tells the platform why we end.
    pub fn exit_error(&mut self, kind: &str, message: &str) {
        let mut body = vec![b'{'];
        push_member(&mut body, "errorMessage", Some(message));
        push_member(&mut body, "errorType", Some(kind));
        body.extend_from_slice(b",\"stackTrace\":[]}");
        let request = format!(
            "POST /2020-01-01/extension/exit/error HTTP/1.1\r\nHost: {}\r\nLambda-Extension-Identifier: {}\r\n\
             Lambda-Extension-Function-Error-Type: {kind}\r\nContent-Length: {}\r\n\r\n{}",
            self.api,
            self.identifier,
            body.len(),
            String::from_utf8_lossy(&body)
        );
        // It is the last thing we do; if it does not arrive, the platform sees us end.
        let _ = exchange(&mut self.stream, &request);
    }
}

fn exchange(stream: &mut TcpStream, request: &str) -> io::Result<Answer> {
    stream.write_all(request.as_bytes())?;
    read_answer(stream)
}
