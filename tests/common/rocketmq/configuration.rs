//! Ports and files of servers: small, quick to start, and on loopback where they can be told.

use std::{fs, path::Path};

use serde_json::json;

use super::{Generation, Wanted, is_free};

pub const CLUSTER: &str = "test-cluster";
pub const BROKER: &str = "broker-a";
pub const ACCESS_KEY: &str = "test-access-key";
pub const SECRET_KEY: &str = "test-secret-key-that-is-never-shown";

/// Quick to start rather than fast: the first compiler only.
pub const JVM: [&str; 11] = [
    "-Xms32m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-XX:-UsePerfData",
    "-XX:MaxDirectMemorySize=512m",
    // The broker reaches into these.
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "--add-exports=java.base/jdk.internal.ref=ALL-UNNAMED",
    // However full the disk is, a test's broker takes messages.
    "-Drocketmq.broker.diskSpaceWarningLevelRatio=0.99",
    "-Drocketmq.broker.diskSpaceCleanForciblyRatio=0.99",
    "-Drocketmq.client.logUseSlf4j=true",
];

pub fn jvm_paths(home: &Path) -> Vec<String> {
    let home = home.display();
    vec![
        "-Xmx512m".to_owned(),
        format!("-Duser.home={home}"),
        format!("-Drocketmq.home.dir={home}"),
        format!("-Drmq.logback.configurationFile={home}/conf/logback_broker.xml"),
        format!("-Dlogback.configurationFile={home}/conf/logback_broker.xml"),
    ]
}

pub struct Ports {
    pub name_server: u16,
    /// The broker listens on the second below this one too.
    pub broker: u16,
    pub proxy_grpc: u16,
    pub proxy_remoting: u16,
}

impl Ports {
    /// Free ports below those that the kernel gives to outgoing connections, so that a broker finds its port again.
    pub fn free() -> Self {
        let mut taken = Vec::new();
        let mut next = |companion: u16| {
            for _ in 0..1000 {
                let port = fastrand::u16(10_000..30_000);
                let both = [port, port - companion];
                if both.iter().all(|port| is_free(*port) && !taken.contains(port)) {
                    taken.extend(both);
                    return port;
                }
            }
            panic!("no free port")
        };
        Self { name_server: next(0), broker: next(2), proxy_grpc: next(0), proxy_remoting: next(0) }
    }

    pub fn name_server(&self) -> String {
        format!("127.0.0.1:{}", self.name_server)
    }
}

/// Configuration file of a server.
pub fn file(server: &str) -> String {
    if server == "proxy" { "proxy.json".to_owned() } else { format!("{server}.properties") }
}

pub fn write(home: &Path, generation: Generation, wanted: Wanted, ports: &Ports) {
    let put = |name: &str, text: &str| fs::write(home.join(name), text).expect("written");
    fs::create_dir(home.join("conf")).expect("a folder");
    for server in ["namesrv", "broker", "tools", "proxy"] {
        put(&format!("conf/logback_{server}.xml"), LOGBACK);
    }
    put(&file("namesrv"), &name_server(home, ports));
    let access = match (wanted.access_control, generation) {
        (false, _) => String::new(),
        (true, Generation::Four) => "aclEnable=true\n".to_owned(),
        (true, Generation::Five) => access_control_5(),
    };
    put(&file("broker"), &(broker(home, ports) + &access));
    if wanted.access_control && generation == Generation::Four {
        put("conf/plain_acl.yml", &access_control_4());
    }
    put(&file("proxy"), &proxy(ports));
}

/// Warnings and worse go where the server prints.
const LOGBACK: &str = r#"<configuration>
  <appender name="out" class="ch.qos.logback.core.ConsoleAppender">
    <encoder><pattern>%d %p %c - %m%n</pattern></encoder>
  </appender>
  <logger name="RocketmqPop" level="OFF"/>
  <root level="WARN"><appender-ref ref="out"/></root>
</configuration>
"#;

// `bindAddress` is known to 5.x only; 4.9 ignores it and listens on every address, as a 5.x proxy does.
fn name_server(home: &Path, ports: &Ports) -> String {
    let (home, port) = (home.display(), ports.name_server);
    format!(
        "listenPort={port}
bindAddress=127.0.0.1
rocketmqHome={home}
kvConfigPath={home}/kv.json
configStorePath={home}/namesrv.properties
"
    )
}

fn broker(home: &Path, ports: &Ports) -> String {
    let (home, port, name_server) = (home.display(), ports.broker, ports.name_server());
    format!(
        "brokerClusterName={CLUSTER}
brokerName={BROKER}
brokerId=0
namesrvAddr={name_server}
brokerIP1=127.0.0.1
brokerIP2=127.0.0.1
bindAddress=127.0.0.1
listenPort={port}
haListenPort=0
storePathRootDir={home}/store
storePathCommitLog={home}/store/commitlog
mappedFileSizeCommitLog=16777216
mappedFileSizeConsumeQueue=600000
maxMessageSize=1048576
flushDiskType=ASYNC_FLUSH
diskMaxUsedSpaceRatio=99
enablePropertyFilter=true
autoCreateTopicEnable=false
timerWheelEnable=false
traceTopicEnable=false
warmMapedFileEnable=false
waitTimeMillsInSendQueue=10000
osPageCacheBusyTimeOutMills=10000
"
    )
}

fn access_control_4() -> String {
    format!(
        "accounts:
  - accessKey: {ACCESS_KEY}
    secretKey: {SECRET_KEY}
    admin: true
"
    )
}

fn access_control_5() -> String {
    let provider = "org.apache.rocketmq.auth";
    format!(
        "authenticationEnabled=true
authenticationMetadataProvider={provider}.authentication.provider.LocalAuthenticationMetadataProvider
authorizationEnabled=true
authorizationMetadataProvider={provider}.authorization.provider.LocalAuthorizationMetadataProvider
initAuthenticationUser={{\"username\":\"{ACCESS_KEY}\",\"password\":\"{SECRET_KEY}\"}}
innerClientAuthenticationCredentials={{\"accessKey\":\"{ACCESS_KEY}\",\"secretKey\":\"{SECRET_KEY}\"}}
"
    )
}

fn proxy(ports: &Ports) -> String {
    json!({
        "rocketMQClusterName": CLUSTER,
        "namesrvAddr": ports.name_server(),
        "localServeAddr": "127.0.0.1",
        "grpcServerPort": ports.proxy_grpc,
        "remotingAccessAddr": "127.0.0.1",
        "remotingListenPort": ports.proxy_remoting,
        // A queue that was added is seen within a second.
        "topicRouteServiceCacheRefreshSeconds": 1,
    })
    .to_string()
}
