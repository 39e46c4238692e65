//! Parameter Store, the part of Systems Manager (API version 2014-11-06) that functions use.

mod labels;
mod list;
mod parameter;
mod read;
mod write;

use crate::reply::{Outcome, Refusal};
use crate::{At, Effort, Reply, SecretsManager};
use parameter::Parameter;
use std::collections::BTreeMap;

/// AWS's quota of standard parameters.
const MAX_PARAMETERS: usize = 10_000;

/// The parameters of one account in one region.
#[derive(Debug)]
pub struct Ssm {
    region: String,
    parameters: BTreeMap<String, Parameter>,
}

/// Where names below `/aws/reference/secretsmanager/` lead.
pub(crate) type Secrets<'a> = Option<&'a mut SecretsManager>;

impl Ssm {
    /// A store without parameters.
    pub fn new(region: &str) -> Ssm {
        Ssm { region: region.to_owned(), parameters: BTreeMap::new() }
    }

    /// Gives a parameter, new or known, a new version. `kind` is `String`, `StringList` or `SecureString`.
    pub fn put(&mut self, name: &str, value: &str, kind: &str, at: &mut At<'_>) -> Result<(), String> {
        let put = self.write(name, value, Some(kind), true, at.now_ms);
        put.map(drop).map_err(|refusal| format!("{}: {}", refusal.kind(), refusal.text()))
    }

    /// Runs one operation. Secrets Manager's store is for references to it.
    pub fn execute(&mut self, operation: &str, body: &[u8], at: &mut At<'_>, secrets: Secrets<'_>) -> Reply {
        self.dispatch(operation, body, at, secrets).map_or_else(Reply::unknown_operation, Reply::from)
    }

    /// The parameter of a name or an ARN.
    fn find(&mut self, name: &str) -> Result<&mut Parameter, Refusal> {
        let name = parameter::name_of(name);
        let found = match self.parameters.contains_key(name) {
            true => name.to_owned(),
            // An ARN does not say whether the name begins with a slash.
            false => format!("/{name}"),
        };
        self.parameters.get_mut(&found).ok_or_else(not_found)
    }
}

fn not_found() -> Refusal {
    Refusal::silent("ParameterNotFound")
}

fn bad_token() -> Refusal {
    Refusal::common("InvalidNextToken", "The specified token is not valid.")
}

/// One table of operations: name, does it write, does it use a key, method.
macro_rules! operations {
    ($($name:literal, $writes:literal, $kms:literal => $method:ident,)+) => {
        impl Ssm {
            fn dispatch(
                &mut self,
                operation: &str,
                body: &[u8],
                at: &mut At<'_>,
                secrets: Secrets<'_>,
            ) -> Option<Outcome> {
                match operation {
                    $($name => {
                        Some(crate::request::read(body).and_then(|request| self.$method(request, at, secrets)))
                    })+
                    _ => None,
                }
            }

            /// What an operation does at most; none that is not known. A key is used for `SecureString` only.
            pub fn effort(operation: &str) -> Option<Effort> {
                match operation {
                    $($name => Some(Effort { writes: $writes, kms: $kms }),)+
                    _ => None,
                }
            }

            /// Every operation that there is.
            pub const OPERATIONS: &'static [&'static str] = &[$($name),+];
        }
    };
}

operations! {
    "AddTagsToResource", true, false => add_tags_to_resource,
    "DeleteParameter", true, false => delete_parameter,
    "DeleteParameters", true, false => delete_parameters,
    "DescribeParameters", false, false => describe_parameters,
    "GetParameter", false, true => get_parameter,
    "GetParameterHistory", false, true => get_parameter_history,
    "GetParameters", false, true => get_parameters,
    "GetParametersByPath", false, true => get_parameters_by_path,
    "LabelParameterVersion", true, false => label_parameter_version,
    "ListTagsForResource", false, false => list_tags_for_resource,
    "PutParameter", true, true => put_parameter,
    "RemoveTagsFromResource", true, false => remove_tags_from_resource,
    "UnlabelParameterVersion", true, false => unlabel_parameter_version,
}

#[cfg(test)]
mod tests;
