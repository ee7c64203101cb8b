//! CMQ: its HTTP side, which is its name server as well, and its TCP side.

mod access;
mod actions;
mod answer;
mod http;
mod parameters;
mod queues;
mod tcp;

use std::{
    collections::BTreeMap,
    io,
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use tokio::{
    net::{TcpListener, TcpSocket},
    sync::watch,
    task::JoinHandle,
};

use super::{message::Handle, server, state::State};

/// Where the service listens.
#[derive(Debug, Clone, Copy)]
pub(super) struct Addresses {
    /// Data over HTTP, and the name server.
    pub http: SocketAddr,
    /// Data over frames.
    pub tcp: SocketAddr,
}

/// The service before it serves.
#[derive(Debug)]
pub(super) struct Listeners {
    pub addresses: Addresses,
    http: TcpListener,
    tcp: TcpListener,
    dead: TcpSocket,
}

/// The service.
#[derive(Debug)]
struct Cmq {
    state: Arc<State>,
    tcp: SocketAddr,
    /// Bound, so that nobody else is, and never listening: what connects to it is refused.
    dead: TcpSocket,
    /// When names were deleted, in epoch milliseconds by the queues' clock: they are not free at once.
    released: Mutex<BTreeMap<String, i64>>,
}

impl Listeners {
    /// Listens. `tcp`: on a free port of the same address if not given.
    pub(super) async fn bind(http: SocketAddr, tcp: Option<SocketAddr>) -> io::Result<Self> {
        let beside = SocketAddr::new(http.ip(), 0);
        let http = TcpListener::bind(http).await?;
        let tcp = TcpListener::bind(tcp.unwrap_or(beside)).await?;
        let addresses = Addresses { http: http.local_addr()?, tcp: tcp.local_addr()? };
        let dead = if beside.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
        dead.bind(beside)?;
        Ok(Self { addresses, http, tcp, dead })
    }

    /// Serves until `stop` is true, then closes every connection.
    pub(super) fn serve(self, state: &Arc<State>, stop: &watch::Receiver<bool>) -> [JoinHandle<()>; 2] {
        let Self { addresses: Addresses { tcp: tcp_addr, .. }, http, tcp, dead } = self;
        let cmq = Arc::new(Cmq { state: Arc::clone(state), tcp: tcp_addr, dead, released: Mutex::default() });
        let over_tcp = Arc::clone(&cmq);
        [
            tokio::spawn(server::serve(http, stop.clone(), move |stream| {
                let front = http::Front::new(Arc::clone(&cmq), &stream);
                server::http(stream, Arc::new(front), http::respond)
            })),
            tokio::spawn(server::serve(tcp, stop.clone(), move |stream| tcp::serve(Arc::clone(&over_tcp), stream))),
        ]
    }
}

/// A message's id as CMQ has it. One bit less than the wire's 64, since Java knows only signed numbers.
pub(super) fn id_number(id: u128) -> u64 {
    (id >> 65) as u64
}

/// How many bits of a handle on the wire say which of the message's handles it is. The others number the message.
const SERIAL_BITS: u32 = 24;

/// A handle as it is on the wire: positive for Java, too, since numbers of messages stay below 2^39.
fn write_handle(handle: Handle) -> u64 {
    handle.number << SERIAL_BITS | handle.serial & ((1 << SERIAL_BITS) - 1)
}

/// Any number can be a handle; whether it is one is known by the queue.
fn read_handle(handle: u64) -> Handle {
    Handle { number: handle >> SERIAL_BITS, serial: handle & ((1 << SERIAL_BITS) - 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_reads_back_as_written_and_is_a_positive_number_of_63_bits() {
        for handle in [Handle { number: 1, serial: 1 }, Handle { number: (1 << 39) - 1, serial: (1 << 24) - 1 }] {
            assert_eq!(read_handle(write_handle(handle)), handle);
            assert!(i64::try_from(write_handle(handle)).is_ok());
        }
        assert!(i64::try_from(id_number(u128::MAX)).is_ok());
    }
}
