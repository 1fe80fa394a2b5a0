//! What the items, types and expressions of a Rust file are called.

use syn::{Attribute, Expr, Lit, Meta};

/// The name of a function or a type, where it is named after what its texts are; all else in it may be of any kind.
pub fn outer(name: &str) -> String {
    let ends =
        ["error", "hint", "hints", "warning", "warnings", "help", "finding", "failure", "problem", "explanation"];
    let lower = name.to_lowercase();
    if ends.iter().any(|end| lower.ends_with(end)) { name.to_string() } else { String::new() }
}

/// Whether an item is compiled for tests alone.
pub fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::Path(path) => path.is_ident("test"),
        Meta::List(list) if list.path.is_ident("cfg") => {
            let mut names = list.tokens.clone().into_iter();
            matches!(names.next(), Some(proc_macro2::TokenTree::Ident(name)) if name == "test")
        }
        _ => false,
    })
}

/// Whether a type derives one of these.
pub fn derives(attributes: &[Attribute], wanted: &[&str]) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        Meta::List(list) if list.path.is_ident("derive") => list.tokens.clone().into_iter().any(
            |token| matches!(token, proc_macro2::TokenTree::Ident(name) if wanted.iter().any(|wanted| name == wanted)),
        ),
        _ => false,
    })
}

/// A line of documentation, with its place.
pub fn comment_line(attribute: &Attribute) -> Option<(usize, String)> {
    let Meta::NameValue(pair) = &attribute.meta else { return None };
    let Expr::Lit(syn::ExprLit { lit: Lit::Str(line), .. }) = &pair.value else { return None };
    pair.path.is_ident("doc").then(|| (line.span().start().line, line.value()))
}

/// The last segment of a path.
pub fn name_of(path: &syn::Path) -> String {
    path.segments.last().map(|segment| segment.ident.to_string()).unwrap_or_default()
}

/// The name of a type that has one.
pub fn type_name(of: &syn::Type) -> String {
    if let syn::Type::Path(path) = of { name_of(&path.path) } else { String::new() }
}

/// What an expression is called: the last two segments of a path, the field, the method.
pub fn expression_name(expression: &Expr) -> String {
    match expression {
        Expr::Path(path) => {
            let names: Vec<String> = path.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
            names[names.len().saturating_sub(2)..].join("::")
        }
        Expr::Field(field) => match &field.member {
            syn::Member::Named(name) => name.to_string(),
            syn::Member::Unnamed(_) => String::new(),
        },
        Expr::MethodCall(call) => call.method.to_string(),
        _ => String::new(),
    }
}
