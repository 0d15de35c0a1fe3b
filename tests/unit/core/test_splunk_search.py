"""URLs of searches in Splunk Web."""

from urllib.parse import parse_qs, urlsplit

from mm2slo_core.link_targets import search_url


def test_search_url_selects_flow_and_time() -> None:
    url = search_url("https://splunk.example/s/", "us-%3Eeu", earliest="1784025000", latest="now")
    found = urlsplit(url)
    assert (found.netloc, found.path) == ("splunk.example", "/s/app/repl_observability/search")
    assert parse_qs(found.query, strict_parsing=True) == {
        "q": [
            'search `repl_index` flow="us->eu" NOT event_action=offsets_committing | `repl_dedup`'
        ],
        "earliest": ["1784025000"],
        "latest": ["now"],
    }
    # Slack's markup has these characters.
    assert not set(url) & set("<>|` ")


def test_search_url_without_flow_selects_all_flows() -> None:
    url = search_url("https://splunk.example", None, earliest="-6h", latest="now")
    assert parse_qs(urlsplit(url).query)["q"] == [
        "search `repl_index` NOT event_action=offsets_committing | `repl_dedup`"
    ]
