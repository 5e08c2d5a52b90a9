//! Signatures by the Standard Webhooks specification. A receiver that has the secret can verify the
//! sender and the time of a request.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::Sha256;

/// Prefix of a base64-encoded secret.
const BASE64_PREFIX: &str = "whsec_";

/// Minimum length of a secret in bytes. A shorter secret could be guessed.
const MIN_SECRET_BYTES: usize = 16;

/// The key that signs webhooks.
#[derive(Clone)]
pub struct SigningKey(Vec<u8>);

/// The reason why a secret is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SigningKeyError {
    /// The part after the prefix is not valid base64.
    #[error("the secret is not valid base64 after the prefix `{BASE64_PREFIX}`")]
    Encoding,
    /// The secret is too short.
    #[error("the secret has fewer than {MIN_SECRET_BYTES} bytes")]
    Short,
}

impl std::fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SigningKey(..)")
    }
}

impl SigningKey {
    /// Parses a secret: base64 after the prefix `whsec_`, or any other string, whose bytes are the
    /// key.
    ///
    /// # Errors
    ///
    /// Returns a [`SigningKeyError`] if the secret is not valid base64 after the prefix, or is too
    /// short.
    pub fn new(secret: &str) -> Result<Self, SigningKeyError> {
        let secret = secret.trim();
        let key = match secret.strip_prefix(BASE64_PREFIX) {
            Some(encoded) => STANDARD.decode(encoded).map_err(|_| SigningKeyError::Encoding)?,
            None => secret.as_bytes().to_vec(),
        };
        if key.len() < MIN_SECRET_BYTES {
            return Err(SigningKeyError::Short);
        }
        Ok(Self(key))
    }

    /// Returns the value of the header `webhook-signature` for a request.
    pub fn sign(&self, id: &str, timestamp_s: i64, body: &[u8]) -> String {
        let mut mac =
            Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC accepts keys of any length");
        mac.update(format!("{id}.{timestamp_s}.").as_bytes());
        mac.update(body);
        format!("v1,{}", STANDARD.encode(mac.finalize().into_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn example_of_the_specification_has_the_expected_signature() {
        let key = SigningKey::new("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw").unwrap();
        let body = br#"{"test": 2432232314}"#;
        let signature = key.sign("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, body);
        assert_eq!(signature, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=");
    }

    #[test]
    fn secrets_are_text_or_base64_and_long_enough() {
        assert!(SigningKey::new("a secret of some length\n").is_ok());
        assert_eq!(SigningKey::new("whsec_?").err(), Some(SigningKeyError::Encoding));
        assert_eq!(SigningKey::new("short").err(), Some(SigningKeyError::Short));
        assert_eq!(
            format!("{:?}", SigningKey::new("a secret of some length")),
            "Ok(SigningKey(..))"
        );
    }
}
