"""Registered domains of the addresses of companies, in any notation."""

from __future__ import annotations

import os

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tldextract import TLDExtract

from outreach_frames.identity.domains import domain_keys
from tests import forked
from tests.scripted import scripted

LIBRARY = TLDExtract(suffix_list_urls=(), cache_dir=None, include_psl_private_domains=True)
SUFFIXES = sorted(suffix for suffix in LIBRARY.tlds if suffix.isascii())


def key(text: str | None) -> str | None:
    """Return the key of one text."""
    found: str | None = domain_keys(pa.array([text], pa.string())).to_pylist()[0]
    return found


# Texts by their registered domain.
DOMAINS = {
    "acme.co.uk": [
        "acme.co.uk", "ACME.Co.UK", " acme.co.uk ", "acme.co.uk.", "www.acme.co.uk",
        "//acme.co.uk/x", "blog.acme.co.uk/x?y=z@w.example#top", "https://acme.co.uk",
        "http//acme.co.uk", "HTTPS://Blog.Acme.co.uk:8443/x", "ftp://someone:secret@acme.co.uk/",
        "\uff41cme.co.uk", "anna.berg@acme.co.uk", "mailto:anna@mail.acme.co.uk?subject=hello",
        "a。acme。co。uk",
    ],
    "acme.github.io": ["acme.github.io", "docs.acme.github.io"],
    "firm3.example": ["firm3.example", "www.firm3.example"],
    "xn--bcher-kva.example": [
        "https://bücher.example/", "shop.xn--bcher-kva.example", "a@Bu\u0308cher.example",
        "bü\u3164cher.example?a=b",
    ],
    "firm.de": ["a_b.firm.de"],
    "www.de": ["www.de"],
    "www.ck": ["www.ck"],
    # Names, labels, punctuation, a path and parameters around one address do not matter.
    "acme.com": [
        "anna@acme.com; bob@www.acme.com", "Anna <anna@acme.com>", "acme.com,", "acme.com:80",
        "https://u:p@acme.com/our-team", "acme.com/index.html", "Website: https://acme.com",
        "https://acme.com/?to=https://b.com", "\u200bacme.com\xa0", "\u3164ac\ufe0fme.com\u2800",
        "anna\uff20acme.com", "acme.com!", "https://acme.com/beta.de", "https://acme.com/@anna",
        "acme.com/@beta.de", "https://acme.com/?a=b.de&c#d", "acme.com/x?y=z.de", "acme.com#top",
    ],
    # Words, IP addresses, public suffixes, several addresses and parts of a broken one.
    None: [
        "", " ", "n/a", "Acme Inc.", "Acme Inc.com", "S.p.A.", "localhost", "example", "com",
        "co.uk", "github.io", "x.ck", "192.168.1.1", "1.2.3.4:80", "http://[::1]/", "[::1", None,
        "https://", "mailto:", "a..b.com", "-x.com", "acme.123", "one.de, two.de", "a" * 300,
        "https://acme.co m", "anna@acme.co m", "https://acme.com (main)", "Anna: anna@acme.com",
        "www.acme", "https://www.https://a.example", "https://https://a.example", "http://http:/a.example",
        "https//www.https//a.example", "https://a.example/https://b.example", "a@b@acme.com",
        "anna@acme.com; bob@beta.com", "anna@acme.com/bob@beta.com", "acme.com/beta.de",
        "a.com, b.com", "a.com|b.com", "a.com\nb.com", "a.comhttps://b.com", "https://www.nhs.uk",
        "www.github.io", "www.公司.cn", "公司.cn", "www.x.ck", "acme .com", "acme.com Ulm",
        "Dr.Smith, Ulm", "/about/us", "about.html", "acme.com:x",
    ],
}  # fmt: skip


@pytest.mark.parametrize("domain", DOMAINS, ids=str)
def test_a_text_has_the_registered_domain_of_its_only_address(domain: str | None) -> None:
    """Any notation of one address has its registered domain; any other text has none."""
    texts = DOMAINS[domain]
    assert {text: key(text) for text in texts} == dict.fromkeys(texts, domain)


@given(
    st.lists(st.sampled_from(["www", "a", "co", "com", "s3", "jp", "kawasaki", "ck"]), max_size=3),
    st.sampled_from(SUFFIXES) | st.sampled_from(["example", "de", "intern"]),
    st.sampled_from(["", "https://", "anna@"]),
)
def test_the_domain_follows_the_public_suffix_list(
    labels: list[str], suffix: str, before: str
) -> None:
    """Every host has the domain that the Public Suffix List defines."""
    host = ".".join([*labels, suffix.replace("*", "x").lstrip("!")])
    found = LIBRARY.extract_str(host)
    expected = found.top_domain_under_public_suffix
    if not found.suffix and host.count("."):
        expected = ".".join(host.split(".")[-2:])
    parent = expected.removeprefix("www.")
    if parent != expected != "www.ck" and not ("." not in parent and parent in SUFFIXES):
        # A public suffix is not a registered domain, but www.de is.
        expected = ""
    assert key(f"{before}{host}") == (expected or None)


@pytest.mark.long
def test_a_domain_needs_no_network() -> None:
    """The list of public suffixes is that of the installed package; nothing is downloaded."""
    code = (
        "import pandas as pd, outreach_frames as of\n"
        "print(of.keys.domain(pd.Series(['www.a.co.uk']))[0])\n"
    )
    with scripted([]) as proxy:
        proxies = dict.fromkeys(("http_proxy", "https_proxy"), proxy.url)
        done = forked.run(code, env={**os.environ, **proxies, "no_proxy": ""})
        assert proxy.requests == []
    assert done.stdout == "a.co.uk\n", done.stderr
