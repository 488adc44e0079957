//! Browsers that log in to the page of sessions, or are logged in.

use api::ErrorCode;
use axum::http::{HeaderMap, Uri, header};

use super::authorization_header::bearer;
use super::tcp_access::{Ends, Locality, TcpAccess};
use crate::http::problem::ProblemResponse;
use crate::page::logins::Logins;
use crate::rest::LOGIN;
use ptyd_core::action::ActionError;
use ptyd_core::credentials::peer_users::PeerUsers;
use ptyd_core::principal::Principal;

/// A request that may be a browser's.
#[derive(Debug, Clone, Copy)]
pub(super) struct Browser<'a> {
    pub(super) access: &'a TcpAccess,
    pub(super) logins: &'a Logins,
    pub(super) locality: Locality,
    pub(super) headers: &'a HeaderMap,
    pub(super) uri: &'a Uri,
}

impl Browser<'_> {
    /// The principal of a browser that is logged in, or logs in with a link; `None` if the request shows neither.
    pub(super) async fn logged_in(
        self,
        peer_users: &PeerUsers,
        uid: u32,
        ends: Ends,
    ) -> Result<Option<Principal>, ProblemResponse> {
        let shown = self.headers.get(header::AUTHORIZATION);
        let principal = match (shown, self.logins.of(self.headers)) {
            (None, Some(known)) => self.by_login(known)?,
            (Some(shown), _) if self.uri.path() == LOGIN => {
                // A ticket is used up even where it is refused.
                let shown = shown.to_str().ok().and_then(bearer);
                let Some(principal) = shown.and_then(|shown| self.logins.redeem(shown)) else { return Ok(None) };
                self.by_link(&principal, peer_users, uid, ends).await?;
                principal
            }
            _ => return Ok(None),
        };
        if principal.is_shut_out() {
            return Err(ProblemResponse::from(ActionError::ShutOut));
        }
        // The user that runs the server is known on this machine only, as by the server's own token.
        if principal.pass.is_none() && self.locality == Locality::Remote {
            let help =
                "this log-in is valid only on the server's machine, and not through a proxy; log in with a named token";
            return Err(ProblemResponse::new(ErrorCode::Unauthorized, help));
        }
        Ok(Some(principal))
    }

    /// Requests of the server's own page only.
    fn by_login(self, known: Option<Principal>) -> Result<Principal, ProblemResponse> {
        if !self.access.is_of_own_page(self.headers, self.uri) {
            let help = "only this server's own page may use the log-in of a browser";
            return Err(ProblemResponse::new(ErrorCode::OriginRefused, help));
        }
        let help = "this browser is not logged in any more; `ptyd open` makes a new link";
        known.ok_or_else(|| ProblemResponse::new(ErrorCode::Unauthorized, help))
    }

    /// Other users of the machine can see the arguments of the program that opens a browser.
    async fn by_link(
        self,
        principal: &Principal,
        peer_users: &PeerUsers,
        uid: u32,
        ends: Ends,
    ) -> Result<(), ProblemResponse> {
        let ends = ends.peer.zip(ends.server).filter(|_| principal.pass.is_none());
        let Some((peer, server)) = ends else { return Ok(()) };
        match peer_users.user(peer, server).await {
            Some(user) if user != uid && user != 0 => {
                Err(ProblemResponse::new(ErrorCode::Forbidden, "this link is for the user that runs the server"))
            }
            Some(_) | None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ptyd_core::config::NetworkConfig;
    use ptyd_core::principal::Scope;

    #[tokio::test]
    // promise: access-17, access-14
    async fn the_servers_user_is_logged_in_on_its_machine_only_and_a_link_is_used_up() {
        let access = TcpAccess::new(&NetworkConfig::of(([127, 0, 0, 1], 7893).into()));
        let logins = Logins::new("http://127.0.0.1:7893", "https://pty.example");
        let me = Principal::named("me", Scope::Admin);
        let link = || logins.link(&me).expect("room").ticket;
        let of = async |locality, path: &str, ticket: &str| {
            let shown = format!("Bearer {ticket}").parse().expect("a header");
            let headers = HeaderMap::from_iter([(header::AUTHORIZATION, shown)]);
            let uri = path.parse().expect("a path");
            let browser = Browser { access: &access, logins: &logins, locality, headers: &headers, uri: &uri };
            let known = browser.logged_in(&PeerUsers::here(), 1_000, Ends::default()).await;
            known.map(|known| known.is_some()).map_err(|refusal| refusal.code)
        };
        let ticket = link();
        assert_eq!(of(Locality::Local, "/terminals", &ticket).await, Ok(false));
        assert_eq!(of(Locality::Local, LOGIN, &ticket).await, Ok(true));
        assert_eq!(of(Locality::Local, LOGIN, &ticket).await, Ok(false));
        let ticket = link();
        assert_eq!(of(Locality::Remote, LOGIN, &ticket).await, Err(ErrorCode::Unauthorized));
        assert_eq!(of(Locality::Local, LOGIN, &ticket).await, Ok(false));
    }
}
