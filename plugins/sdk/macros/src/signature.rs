//! Signatures of the functions with an attribute.

use syn::spanned::Spanned;
use syn::{Error, GenericParam, ReturnType, Signature};

/// Rejects what the types of an entry would report less clearly. `form` is the signature that the
/// attribute requires, with a number of `inputs`.
pub(crate) fn check(signature: &Signature, form: &str, inputs: usize) -> syn::Result<()> {
    if let Some(keyword) = &signature.asyncness {
        let message = "remove `async`: a call of the host returns when its result is there, and \
                       `llm::complete_all`, `http::send_all` and `tools::call_all` make several \
                       calls at once";
        return Err(Error::new(keyword.span(), message));
    }
    if let Some(receiver) = signature.receiver() {
        let message = format!("expected a function, not a method: `{form}`");
        return Err(Error::new(receiver.span(), message));
    }
    let of_type = |parameter: &&GenericParam| !matches!(parameter, GenericParam::Lifetime(_));
    if let Some(parameter) = signature.generics.params.iter().find(of_type) {
        let message = format!("name a type in the place of the parameter; expected `{form}`");
        return Err(Error::new(parameter.span(), message));
    }
    if signature.inputs.len() != inputs {
        let message = format!("expected the arguments of `{form}`");
        return Err(Error::new(signature.paren_token.span.join(), message));
    }
    if let ReturnType::Default = signature.output {
        let message = format!("expected the result of `{form}`");
        return Err(Error::new(signature.paren_token.span.close(), message));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use syn::{ItemFn, parse_str};

    use super::check;

    const NODE: &str = "fn(&Context, Input) -> Result<Output, Failure>";

    fn problem(function: &str) -> Option<String> {
        let function: ItemFn = parse_str(function).unwrap();
        check(&function.sig, NODE, 2).err().map(|error| error.to_string())
    }

    #[test]
    fn signature_with_other_names_fits() {
        assert_eq!(problem("fn f(_: &Context, Input { a }: Input) -> Answer { work() }"), None);
        assert_eq!(problem("fn f<'c>(c: &'c Context, i: Input) -> Answer { work() }"), None);
    }

    #[test]
    fn wrong_signatures_are_rejected_with_the_expected_one() {
        for (function, expected) in [
            (
                "async fn f(c: &Context, i: Input) -> Result<Output, Failure> { work() }",
                "remove `async`",
            ),
            ("fn f(self, input: Input) -> Result<Output, Failure> { work() }", "not a method"),
            ("fn f(&self, input: Input) -> Result<Output, Failure> { work() }", "not a method"),
            ("fn f<T>(c: &Context, input: T) -> Result<Output, Failure> { work() }", NODE),
            ("fn f() -> Result<Output, Failure> { work() }", "the arguments of"),
            ("fn f(input: Input) -> Result<Output, Failure> { work() }", "the arguments of"),
            (
                "fn f(c: &Context, a: A, b: B) -> Result<Output, Failure> { work() }",
                "the arguments of",
            ),
            ("fn f(c: &Context, input: Input) { work() }", "the result of"),
        ] {
            let problem = problem(function).unwrap();
            assert!(problem.contains(expected), "{function}: {problem}");
        }
    }
}
