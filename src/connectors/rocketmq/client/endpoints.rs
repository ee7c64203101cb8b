//! The option that names the servers.

/// Servers of `text`: `HOST:PORT`, `http://HOST:PORT`, several joined by `;`, an IPv6 address in brackets. The error
/// says what was found and what is expected.
pub fn parse_endpoints(text: &str) -> Result<Vec<String>, String> {
    let mut endpoints = Vec::new();
    for part in text.split(';').map(str::trim).filter(|part| !part.is_empty()) {
        endpoints.push(parse(part)?);
    }
    if endpoints.is_empty() {
        return Err(format!("{text:?} names no server, expected HOST:PORT"));
    }
    Ok(endpoints)
}

fn parse(part: &str) -> Result<String, String> {
    let refuse = |what: &str| Err(format!("{part:?} {what}"));
    if part.contains(',') {
        return refuse("holds a comma; several servers are joined by ;");
    }
    let address = match part.split_once("://") {
        None => part,
        // The scheme of the console's own display; the protocol is not HTTP.
        Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => rest.strip_suffix('/').unwrap_or(rest),
        Some((scheme, _)) => {
            return refuse(&format!("begins with {scheme}://, expected HOST:PORT or http://HOST:PORT"));
        }
    };
    let Some((host, port)) = address.rsplit_once(':') else {
        return refuse("has no port, expected HOST:PORT");
    };
    if port.parse::<u16>().ok().filter(|port| *port > 0).is_none() {
        return refuse(&format!("has the port {port:?}, expected a number from 1 to 65535"));
    }
    let valid = match host.strip_prefix('[').and_then(|host| host.strip_suffix(']')) {
        Some(inner) => inner.parse::<std::net::Ipv6Addr>().is_ok(),
        None if host.contains(':') => return refuse("holds an IPv6 address without brackets, expected [ADDRESS]:PORT"),
        None => !host.is_empty() && host.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'.' | b'-' | b'_')),
    };
    if !valid {
        return refuse("is not HOST:PORT");
    }
    Ok(address.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_of_an_endpoint_is_read() {
        let parsed =
            parse_endpoints(" http://a-b.c_d.com:9876 ;10.0.0.1:9876;[::1]:8080;HTTP://h:1/; ").expect("valid");
        assert_eq!(parsed, ["a-b.c_d.com:9876", "10.0.0.1:9876", "[::1]:8080", "h:1"]);
    }

    #[test]
    fn what_is_no_endpoint_is_told_with_what_is_expected() {
        for (text, told) in [
            ("", "names no server"),
            (" ; ", "names no server"),
            ("host", "has no port"),
            ("h:x", "the port \"x\""),
            ("h:0", "the port \"0\""),
            ("h:70000", "the port \"70000\""),
            ("::1:9876", "without brackets"),
            ("[::g]:9876", "is not HOST:PORT"),
            ("a:1,b:2", "joined by ;"),
            ("a b:2", "is not HOST:PORT"),
            ("https://h:1", "begins with https://"),
            (":9876", "is not HOST:PORT"),
            ("h:1/path", "the port \"1/path\""),
        ] {
            let error = parse_endpoints(text).expect_err(text);
            assert!(error.contains(told), "{text}: {error}");
        }
    }
}
