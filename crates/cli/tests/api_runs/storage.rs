//! An account stores so much and no more.

use ringfence_wire::v1;
use ringfence_wire::v1::codebase_service_client::CodebaseServiceClient;
use ringfence_wire::v1::upload_chunk::{Content, Metadata};
use tonic::transport::Channel;
use tonic::{Code, Response, Status};

use crate::support::{Server, refused, within};

async fn codebase(codebases: &mut CodebaseServiceClient<Channel>) -> String {
    let wanted =
        v1::CreateCodebaseRequest { name: "c".into(), owner_id: "o".into(), ..Default::default() };
    codebases.create_codebase(wanted).await.unwrap().into_inner().id
}

async fn upload(
    codebases: &mut CodebaseServiceClient<Channel>,
    id: &str,
    path: &str,
    size: usize,
) -> Result<Response<v1::UploadResult>, Status> {
    let metadata =
        Metadata { codebase_id: id.into(), file_path: path.into(), ..Default::default() };
    let pieces = [Content::Metadata(metadata), Content::Data(vec![0; size].into())];
    let chunks = pieces.map(|content| v1::UploadChunk { content: Some(content) });
    within(codebases.upload_files(tokio_stream::iter(chunks))).await
}

#[tokio::test]
async fn all_codebases_of_an_account_together_stay_within_its_limit() {
    let server = Server::with(&["--max-storage", "1000"]).await;
    let mut codebases = CodebaseServiceClient::new(server.tcp.clone());
    let (one, two) = (codebase(&mut codebases).await, codebase(&mut codebases).await);
    upload(&mut codebases, &one, "a", 600).await.unwrap();
    let over = upload(&mut codebases, &two, "a", 401).await;
    let details = refused(over, Code::ResourceExhausted, "RESOURCE_LIMIT_EXCEEDED");
    assert_eq!((details["limit"].as_str(), details["most"].as_str()), ("max_account_size", "1000"));
    upload(&mut codebases, &two, "a", 400).await.unwrap();
    let entry = v1::ManifestEntry {
        path: "big".into(),
        size: 401,
        blake3: "0".repeat(64),
        ..Default::default()
    };
    let asked = v1::NegotiateUploadRequest { codebase_id: two.clone(), entries: vec![entry] };
    let over = codebases.negotiate_upload(asked).await;
    refused(over, Code::ResourceExhausted, "RESOURCE_LIMIT_EXCEEDED");
    let asked = v1::DeleteCodebaseRequest { codebase_id: one };
    codebases.delete_codebase(asked).await.unwrap();
    upload(&mut codebases, &two, "b", 600).await.unwrap();
}
