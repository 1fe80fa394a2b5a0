//! The texts of a Rust file, found by `syn`.

use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Attribute, Expr, Lit, Meta, Token};

use super::kind::Kind;
use super::rust_names::{comment_line, derives, expression_name, is_of_tests, name_of, outer, type_name};
use super::{Message, text};

/// What derives the options and arguments of a command from the comments of a type.
const COMMAND_LINE_TYPES: &[&str] = &["Parser", "Args", "Subcommand", "ValueEnum"];

/// Macros whose text only a developer sees.
const SILENT_MACROS: &[&str] = &[
    "assert",
    "assert_eq",
    "assert_ne",
    "cfg",
    "compile_error",
    "debug_assert",
    "debug_assert_eq",
    "env",
    "include",
    "include_bytes",
    "include_str",
    "panic",
    "unreachable",
];

/// The texts of a file, in their order; the reason where the file is not Rust.
pub fn messages(path: &str, source: &str) -> Result<Vec<Message>, String> {
    let file = syn::parse_file(source).map_err(|error| format!("{path}:{}: {error}", error.span().start().line))?;
    let mut collector = Collector { path, names: Vec::new(), found: Vec::new() };
    if !is_of_tests(&file.attrs) {
        collector.visit_file(&file);
    }
    Ok(collector.found)
}

/// The modules that a file declares for tests alone.
pub fn test_modules(source: &str) -> Vec<String> {
    let Ok(file) = syn::parse_file(source) else { return Vec::new() };
    let modules = file.items.into_iter().filter_map(|item| match item {
        syn::Item::Mod(module) if module.content.is_none() && is_of_tests(&module.attrs) => {
            Some(module.ident.to_string())
        }
        _ => None,
    });
    modules.collect()
}

struct Collector<'path> {
    path: &'path str,
    /// The names around the place that is looked at, the outermost first.
    names: Vec<String>,
    found: Vec<Message>,
}

impl Collector<'_> {
    fn within(&mut self, name: String, look: impl FnOnce(&mut Self)) {
        self.names.push(name);
        look(self);
        self.names.pop();
    }

    fn add(&mut self, line: usize, kind: Kind, text: &str) {
        self.found.push(Message { path: self.path.to_string(), line, kind, text: text::on_one_line(text) });
    }

    fn text(&mut self, literal: &syn::LitStr) {
        let value = literal.value();
        let kind = text::kind_told_by(&value).unwrap_or_else(|| Kind::of(self.names.iter().map(String::as_str)));
        // What `#[error]` says is a whole message, however short.
        let is_whole = self.names.last().is_some_and(|name| name == "error");
        if text::is_message(kind, &value) || is_whole && text::has_word(&value) {
            self.add(literal.span().start().line, kind, &value);
        }
    }

    /// Arguments that are no expressions, such as those of `tracing::warn!(path = %path, "…")`.
    fn tokens(&mut self, tokens: proc_macro2::TokenStream) {
        for token in tokens {
            match token {
                proc_macro2::TokenTree::Group(group) => self.tokens(group.stream()),
                proc_macro2::TokenTree::Literal(literal) => {
                    if let Lit::Str(literal) = Lit::new(literal) {
                        self.text(&literal);
                    }
                }
                _ => {}
            }
        }
    }

    /// The comment of a command, an option or an argument, which the command line prints as its help.
    fn help(&mut self, attributes: &[Attribute]) {
        let lines: Vec<(usize, String)> = attributes.iter().filter_map(comment_line).collect();
        if let Some((line, _)) = lines.first() {
            let joined: Vec<&str> = lines.iter().map(|(_, text)| text.trim()).collect();
            self.add(*line, Kind::Help, &joined.join("\n"));
        }
    }

    fn attribute_texts(&mut self, attributes: &[Attribute]) {
        for attribute in attributes {
            let Meta::List(list) = &attribute.meta else { continue };
            let name = name_of(&list.path);
            if !matches!(name.as_str(), "error" | "arg" | "command") {
                continue;
            }
            let arguments = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(list.tokens.clone());
            self.within(if name == "error" { name } else { String::new() }, |inner| match arguments {
                Ok(arguments) => arguments.iter().for_each(|argument| inner.visit_expr(argument)),
                Err(_) => inner.tokens(list.tokens.clone()),
            });
        }
    }

    fn arguments<'a>(&mut self, name: &str, arguments: impl Iterator<Item = &'a Expr>) {
        for (index, argument) in arguments.enumerate() {
            // The second argument of an expected error is its hint.
            let name = if index == 1 && name == "ExpectedError::new" { "hint" } else { name };
            self.within(name.to_string(), |inner| inner.visit_expr(argument));
        }
    }
}

impl<'ast> Visit<'ast> for Collector<'_> {
    fn visit_item(&mut self, item: &'ast syn::Item) {
        let (attributes, name) = match item {
            syn::Item::Fn(item) => (&item.attrs, outer(&item.sig.ident.to_string())),
            syn::Item::Const(item) => (&item.attrs, item.ident.to_string()),
            syn::Item::Static(item) => (&item.attrs, item.ident.to_string()),
            syn::Item::Impl(item) => (&item.attrs, outer(&type_name(&item.self_ty))),
            syn::Item::Mod(item) => (&item.attrs, String::new()),
            syn::Item::Enum(item) => (&item.attrs, outer(&item.ident.to_string())),
            syn::Item::Struct(item) => (&item.attrs, outer(&item.ident.to_string())),
            syn::Item::Macro(item) => (&item.attrs, String::new()),
            _ => return visit::visit_item(self, item),
        };
        if is_of_tests(attributes) {
            return;
        }
        self.attribute_texts(attributes);
        let of_the_command_line = derives(attributes, COMMAND_LINE_TYPES);
        self.within(name, |inner| {
            match item {
                // The comment of a group of options is not printed; that of a whole command is.
                syn::Item::Struct(item) if of_the_command_line => {
                    if derives(attributes, &["Parser"]) {
                        inner.help(attributes);
                    }
                    item.fields.iter().for_each(|field| inner.help(&field.attrs));
                }
                syn::Item::Enum(item) if of_the_command_line => {
                    for variant in &item.variants {
                        inner.help(&variant.attrs);
                        variant.fields.iter().for_each(|field| inner.help(&field.attrs));
                    }
                }
                _ => {}
            }
            visit::visit_item(inner, item);
        });
    }

    fn visit_impl_item_fn(&mut self, function: &'ast syn::ImplItemFn) {
        if !is_of_tests(&function.attrs) {
            let name = outer(&function.sig.ident.to_string());
            self.within(name, |inner| visit::visit_impl_item_fn(inner, function));
        }
    }

    // Attributes hold many texts that nobody is shown: those that are shown are looked for by name.
    fn visit_attribute(&mut self, _: &'ast Attribute) {}

    fn visit_variant(&mut self, variant: &'ast syn::Variant) {
        self.attribute_texts(&variant.attrs);
        visit::visit_variant(self, variant);
    }

    fn visit_field(&mut self, field: &'ast syn::Field) {
        self.attribute_texts(&field.attrs);
        visit::visit_field(self, field);
    }

    fn visit_local(&mut self, local: &'ast syn::Local) {
        let name = match &local.pat {
            syn::Pat::Ident(pattern) => pattern.ident.to_string(),
            _ => String::new(),
        };
        self.within(name, |inner| visit::visit_local(inner, local));
    }

    fn visit_field_value(&mut self, field: &'ast syn::FieldValue) {
        let name = match &field.member {
            syn::Member::Named(name) => name.to_string(),
            syn::Member::Unnamed(_) => String::new(),
        };
        self.within(name, |inner| visit::visit_field_value(inner, field));
    }

    fn visit_expr_assign(&mut self, assignment: &'ast syn::ExprAssign) {
        let name = expression_name(&assignment.left);
        self.within(name, |inner| visit::visit_expr_assign(inner, assignment));
    }

    fn visit_expr_call(&mut self, call: &'ast syn::ExprCall) {
        let name = expression_name(&call.func);
        self.arguments(&name, call.args.iter());
    }

    fn visit_expr_method_call(&mut self, call: &'ast syn::ExprMethodCall) {
        self.visit_expr(&call.receiver);
        let method = call.method.to_string();
        let name = match method.as_str() {
            // What a list is called says what is put into it.
            "push" | "extend" | "insert" => expression_name(&call.receiver),
            _ => method,
        };
        self.arguments(&name, call.args.iter());
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        let name = name_of(&called.path);
        if SILENT_MACROS.contains(&name.as_str()) {
            return;
        }
        let parsed = Punctuated::<Expr, Token![,]>::parse_terminated.parse2(called.tokens.clone());
        match parsed {
            // What a fault point is called, and the error that only its tests see.
            Ok(arguments) if name == "fault" => arguments.iter().skip(2).for_each(|argument| self.visit_expr(argument)),
            Ok(arguments) => self.arguments(&name, arguments.iter()),
            Err(_) => self.within(name, |inner| inner.tokens(called.tokens.clone())),
        }
    }

    fn visit_lit_str(&mut self, literal: &'ast syn::LitStr) {
        self.text(literal);
    }
}

#[cfg(test)]
mod tests;
