//! `GetRandomPassword`.

use super::SecretsManager;
use crate::At;
use crate::reply::{Outcome, Refusal};
use rand::Rng;
use rand::seq::SliceRandom;
use serde::Deserialize;
use serde_json::json;

const PUNCTUATION: &str = r##"!"#$%&'()*+,-./:;<=>?@[\]^_`{|}~"##;

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct GetRandomPassword {
    password_length: usize,
    exclude_characters: String,
    exclude_numbers: bool,
    exclude_punctuation: bool,
    exclude_uppercase: bool,
    exclude_lowercase: bool,
    include_space: bool,
    require_each_included_type: bool,
}

impl Default for GetRandomPassword {
    fn default() -> Self {
        GetRandomPassword {
            password_length: 32,
            exclude_characters: String::new(),
            exclude_numbers: false,
            exclude_punctuation: false,
            exclude_uppercase: false,
            exclude_lowercase: false,
            include_space: false,
            require_each_included_type: true,
        }
    }
}

impl SecretsManager {
    pub(super) fn get_random_password(&mut self, request: GetRandomPassword, at: &mut At<'_>) -> Outcome {
        let kinds: Vec<Vec<char>> = [
            (!request.exclude_lowercase, ('a'..='z').collect::<String>()),
            (!request.exclude_uppercase, ('A'..='Z').collect()),
            (!request.exclude_numbers, ('0'..='9').collect()),
            (!request.exclude_punctuation, PUNCTUATION.to_owned()),
            (request.include_space, " ".to_owned()),
        ]
        .into_iter()
        .filter(|(wanted, _)| *wanted)
        .map(|(_, kind)| kind.chars().filter(|c| !request.exclude_characters.contains(*c)).collect())
        .filter(|kind: &Vec<char>| !kind.is_empty())
        .collect();
        let length = request.password_length;
        let refuse = |text: &str| Err(Refusal::modeled("InvalidParameterException", text));
        if !(1..=4096).contains(&length) {
            return refuse("InvalidParameterException: password length must be 1 to 4096");
        }
        if kinds.is_empty() {
            return refuse("Every character type is excluded.");
        }
        if request.require_each_included_type && length < kinds.len() {
            return refuse("Password length is too short based on the required types.");
        }
        let all: Vec<char> = kinds.iter().flatten().copied().collect();
        let mut password: Vec<char> = match request.require_each_included_type {
            true => kinds.iter().map(|kind| kind[at.rng.random_range(0..kind.len())]).collect(),
            false => Vec::new(),
        };
        while password.len() < length {
            password.push(all[at.rng.random_range(0..all.len())]);
        }
        password.shuffle(at.rng);
        Ok(json!({ "RandomPassword": password.into_iter().collect::<String>() }))
    }
}
