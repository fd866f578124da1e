//! CardSettings of a network card that only its driver has, as `ethtool` shows them (ethtool netlink, Linux 5.6 and
//! later).

use anyhow::Context;
use ethtool::{
    EthtoolAttr, EthtoolCoalesceAttr, EthtoolError, EthtoolFeatureAttr, EthtoolHandle, EthtoolMessage, EthtoolRingAttr,
};
use futures_util::{Stream, TryStreamExt};
use netlink_packet_generic::GenlMessage;

/// `None`: the driver has no such setting.
#[derive(Debug, Default)]
pub struct CardSettings {
    /// Descriptors of the receive ring: now, and at most.
    pub ring: Option<(u32, u32)>,
    /// Microseconds from a frame to its interrupt, at most.
    pub rx_usecs: Option<u32>,
    /// The card chooses that time itself.
    pub adaptive_rx: Option<bool>,
    /// Names of the offloads that are on.
    pub features: Option<Vec<String>>,
}

/// The attributes of an answer; none if the driver has no such setting.
async fn attributes<S>(answer: Result<S, EthtoolError>) -> Vec<EthtoolAttr>
where
    S: Stream<Item = Result<GenlMessage<EthtoolMessage>, EthtoolError>>,
{
    let Ok(stream) = answer else { return Vec::new() };
    let messages: Vec<_> = Box::pin(stream).try_collect().await.unwrap_or_default();
    messages.into_iter().flat_map(|message: GenlMessage<EthtoolMessage>| message.payload.nlas).collect()
}

async fn settings(handle: &mut EthtoolHandle, iface: &str) -> CardSettings {
    let iface = Some(iface);
    let mut answers = attributes(handle.ring().get(iface).execute().await).await;
    answers.extend(attributes(handle.coalesce().get(iface).execute().await).await);
    answers.extend(attributes(handle.feature().get(iface).execute().await).await);
    let (mut settings, mut now, mut most) = (CardSettings::default(), None, None);
    for attribute in answers {
        match attribute {
            EthtoolAttr::Ring(EthtoolRingAttr::Rx(frames)) => now = Some(frames),
            EthtoolAttr::Ring(EthtoolRingAttr::RxMax(frames)) => most = Some(frames),
            EthtoolAttr::Coalesce(EthtoolCoalesceAttr::RxUsecs(time)) => settings.rx_usecs = Some(time),
            EthtoolAttr::Coalesce(EthtoolCoalesceAttr::UseAdaptiveRx(on)) => settings.adaptive_rx = Some(on),
            EthtoolAttr::Feature(EthtoolFeatureAttr::Active(bits)) => {
                settings.features = Some(bits.into_iter().filter(|bit| bit.value).map(|bit| bit.name).collect());
            }
            _ => (),
        }
    }
    settings.ring = now.zip(most);
    settings
}

/// Asks the driver of an interface.
///
/// # Errors
/// The kernel has no ethtool netlink.
pub fn ask(iface: &str) -> anyhow::Result<CardSettings> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
    runtime.block_on(async {
        let (connection, mut handle, _) = ethtool::new_connection().context("ethtool netlink")?;
        tokio::spawn(connection);
        Ok(settings(&mut handle, iface).await)
    })
}
