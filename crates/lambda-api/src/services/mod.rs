//! The other services that a deployment needs, each with just enough operations. Small and our own: the crates that imitate whole
//! services bring hundreds of operations and their compile time (docs/decisions/2026-11-21-lambda-api.md).

pub mod cbor;
pub mod cloudwatch;
pub mod iam;
pub mod logs;
pub mod s3;
pub mod sts;
mod xml;

use crate::api::Api;
use crate::fault::{Fault, Kind, Throttle};
use crate::request::{Outcome, Reply, Request};
use cloudwatch::Wire;
use hyper::HeaderMap;
use std::sync::Arc;

/// Whom a request is for, by its signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    Lambda,
    Iam,
    Sts,
    S3,
    Logs,
    CloudWatch(Wire),
    /// Signed for a service that danki does not have here.
    Other,
}

impl Service {
    /// By the name in a credential scope, and by what the request says of its protocol.
    pub fn named(name: &str, headers: &HeaderMap) -> Service {
        match name {
            "lambda" => Service::Lambda,
            "iam" => Service::Iam,
            "sts" => Service::Sts,
            "s3" => Service::S3,
            "logs" => Service::Logs,
            "monitoring" => Service::CloudWatch(Wire::of(headers)),
            _ => Service::Other,
        }
    }
}

pub fn answer(api: &Arc<Api>, service: Service, request: &Request) -> Outcome {
    match service {
        Service::Iam => iam::answer(api, request),
        Service::Sts => sts::answer(api, request),
        Service::S3 => s3::answer(api, request),
        Service::Logs => logs::answer(api, request),
        Service::CloudWatch(wire) => cloudwatch::answer(api, wire, request),
        Service::Lambda | Service::Other => Err(Fault::new(
            Kind::NotOffered,
            "danki answers for lambda, iam, sts, s3, logs and monitoring at this port; functions reach the region's other services by their own names",
        )),
    }
}

/// A refusal in the service's own protocol.
pub fn refusal(service: Service, fault: &Fault, id: &str) -> Reply {
    let (name, status) = fault.kind.wire();
    match service {
        Service::Iam | Service::Sts => xml::query_error(status, query_name(fault.kind), &fault.message, id),
        Service::S3 => xml::s3_error(status, name.trim_end_matches("Exception"), &fault.message, id),
        Service::Logs => {
            let body = serde_json::json!({ "__type": name, "message": fault.message });
            Reply { content_type: "application/x-amz-json-1.1", ..Reply::json(status, &body) }
        }
        Service::CloudWatch(wire) => cloudwatch::refusal(wire, fault),
        Service::Lambda | Service::Other => {
            let reply = Reply::json(status, &fault.body()).header("x-amzn-ErrorType", name);
            match fault.kind {
                Kind::Throttled(Throttle::AccountRate | Throttle::ReservedRate | Throttle::FunctionRate) => {
                    reply.header("Retry-After", "1")
                }
                Kind::Throttled(_) => reply.header("Retry-After", "0"),
                _ => reply,
            }
        }
    }
}

/// IAM's and STS's own words for the same things.
fn query_name(kind: Kind) -> &'static str {
    match kind {
        Kind::ResourceNotFound => "NoSuchEntity",
        Kind::ResourceConflict => "EntityAlreadyExists",
        Kind::Validation | Kind::InvalidParameterValue => "ValidationError",
        other => other.wire().0,
    }
}
