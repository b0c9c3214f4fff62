/** A certificate for localhost that nobody vouches for, and its key; they protect nothing. */
export const selfSigned: { readonly key: string; readonly cert: string } = {
  key: `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgnk8uHH3QAmD3OoP/
HIsEIf6wwSlNxThrNpWeBUTiWGqhRANCAAT5vfPoNDD8kLCdyfS2me3yVMODiKXQ
54ISRQ2FjmjzX1i8Mtv8f/VCEtJ37wtauC2Q9XNFWFqrKUmdQLDt01Z+
-----END PRIVATE KEY-----`,
  cert: `-----BEGIN CERTIFICATE-----
MIIBfjCCASWgAwIBAgIUOpKEkkmy1B6fh2tqsxGxwK047tEwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDA5MTMyNVoYDzIxMjYxMTA2
MDkxMzI1WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAT5vfPoNDD8kLCdyfS2me3yVMODiKXQ54ISRQ2FjmjzX1i8Mtv8f/VC
EtJ37wtauC2Q9XNFWFqrKUmdQLDt01Z+o1MwUTAdBgNVHQ4EFgQUK1TVyHdPVoU+
ModtonVCWa9mfPswHwYDVR0jBBgwFoAUK1TVyHdPVoU+ModtonVCWa9mfPswDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiAykbwt2nv+rk+QoJ4B2Rcb
MQAkLvwUTcTx6WZkf70PIAIgXX4kjrR4nlhk+5AjSXjk5fhaA1mFtkuUgPOs0SiP
iaE=
-----END CERTIFICATE-----`,
}
