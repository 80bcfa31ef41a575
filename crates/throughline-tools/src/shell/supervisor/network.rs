//! The network namespace of a command: a loopback device of its own, and nothing else.

use rustix::net::{
    AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType, netlink, recv, sendto, socket_with,
};
use std::fs;

const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const NLM_F_REQUEST_ACK: u16 = 1 | 4;
const IFF_UP: u32 = 1;
/// In a new namespace the loopback device is the first.
const LOOPBACK: i32 = 1;

/// Turns the loopback device on, so that programs can talk to themselves.
pub(super) fn raise_loopback() -> Result<(), String> {
    let failed = |what: &str| format!("the loopback device cannot be turned on: {what}");
    // A header of 16 bytes, then an `ifinfomsg` of 16 bytes.
    let mut message = Vec::with_capacity(32);
    message.extend_from_slice(&32_u32.to_ne_bytes());
    message.extend_from_slice(&RTM_NEWLINK.to_ne_bytes());
    message.extend_from_slice(&NLM_F_REQUEST_ACK.to_ne_bytes());
    message.extend_from_slice(&[0; 8]);
    message.extend_from_slice(&[0; 4]);
    message.extend_from_slice(&LOOPBACK.to_ne_bytes());
    message.extend_from_slice(&IFF_UP.to_ne_bytes());
    message.extend_from_slice(&IFF_UP.to_ne_bytes());

    let error = |error: rustix::io::Errno| failed(&error.to_string());
    // Without a protocol it is the one for routes and devices.
    let socket = socket_with(AddressFamily::NETLINK, SocketType::RAW, SocketFlags::CLOEXEC, None);
    let socket = socket.map_err(error)?;
    let kernel = netlink::SocketAddrNetlink::new(0, 0);
    sendto(&socket, &message, SendFlags::empty(), &kernel).map_err(error)?;
    let mut answer = [0; 256];
    let (received, _) = recv(&socket, &mut answer, RecvFlags::empty()).map_err(error)?;
    match acknowledged(&answer[..received.min(answer.len())]) {
        Some(0) => Ok(()),
        Some(code) => Err(failed(&std::io::Error::from_raw_os_error(-code).to_string())),
        None => Err(failed("the kernel does not acknowledge it")),
    }
}

/// Returns the error number of an acknowledgement; 0 is success.
fn acknowledged(answer: &[u8]) -> Option<i32> {
    let kind = u16::from_ne_bytes(answer.get(4..6)?.try_into().ok()?);
    let code = i32::from_ne_bytes(answer.get(16..20)?.try_into().ok()?);
    (kind == NLMSG_ERROR).then_some(code)
}

/// Says whether something in this namespace tried to reach what is not there: an address that no route leads to, or a
/// service on loopback such as a name server.
pub(super) fn was_sought() -> bool {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    counts(&read("/proc/self/net/snmp"), &read("/proc/self/net/snmp6"))
}

fn counts(snmp: &str, snmp6: &str) -> bool {
    let four = [("Ip:", "OutNoRoutes"), ("Udp:", "NoPorts")];
    let four = four.iter().any(|(table, name)| counter(snmp, table, name) > 0);
    let six = ["Ip6OutNoRoutes", "Udp6NoPorts"];
    let six = six.iter().any(|name| counter6(snmp6, name) > 0);
    four || six
}

/// Returns a counter of a table that has its names in one line and its values in the next.
fn counter(text: &str, table: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.strip_prefix(table));
    let (Some(names), Some(values)) = (lines.next(), lines.next()) else { return 0 };
    let mut both = names.split_whitespace().zip(values.split_whitespace());
    both.find(|(it, _)| *it == name).and_then(|(_, value)| value.parse().ok()).unwrap_or(0)
}

fn counter6(text: &str, name: &str) -> u64 {
    let mut lines = text.lines().filter_map(|line| line.split_once(char::is_whitespace));
    lines.find(|(it, _)| *it == name).and_then(|(_, value)| value.trim().parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_counted() {
        let snmp = "Ip: Forwarding OutNoRoutes\nIp: 2 3\nUdp: InDatagrams NoPorts\nUdp: 4 0\n";
        assert_eq!((counter(snmp, "Ip:", "OutNoRoutes"), counter(snmp, "Udp:", "NoPorts")), (3, 0));
        assert!(counts(snmp, ""));
        assert!(!counts("", "Ip6OutNoRoutes                  \t0\n"));
        assert!(counts("", "Ip6OutNoRoutes                  \t1\n"));
        assert!(!counts("nonsense", "nonsense"));
    }
}
