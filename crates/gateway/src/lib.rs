//! HTTP in front of a function, as API Gateway and function URLs do it.
//!
//! An HTTP request becomes an event ([`event`], formats 1.0 and 2.0); what the function returns becomes an HTTP response ([`Response`]); a
//! method and a path choose a route ([`Routes`]). All of it is pure: no socket, no clock. Source of the shapes: AWS's developer guides of
//! Lambda ("Invoking Lambda function URLs") and API Gateway ("Working with AWS Lambda proxy integrations for HTTP APIs").

mod query;
mod request;
mod response;
mod routes;
mod v1;
mod v2;

pub use query::{decoded, pairs};
pub use request::{Arrival, Call, Front, Payload};
pub use response::{Head, Malformed, Response};
pub use routes::{BadPath, Found, Routes};

use serde_json::Value;

/// The event that a function gets for a request.
pub fn event(arrival: &Arrival<'_>, call: &Call<'_>, payload: Payload) -> Value {
    match payload {
        Payload::V1 => v1::event(arrival, call),
        Payload::V2 => v2::event(arrival, call),
    }
}
