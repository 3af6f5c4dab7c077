/**
 * Labels that no site has as its id, because a site's hostnames in the installation's zones begin with its id.
 * People, mail servers, browsers and certificate authorities expect the operator behind these labels (RFC 2142 and the
 * usual names of services).
 */
const RESERVED: ReadonlySet<string> = new Set(
  `
  abuse account accounts admin administrator analytics any api apis app apps assets auth autoconfig autodiscover
  backup beta billing blog broadcasthost calendar ca cdn certs chat checkout ci client clients cloud cms config console
  contact control cp cpanel customer customers dashboard data db debug default dev developer developers dkim dmarc
  dns docs domain domains download downloads edge email error exchange external feedback files forum ftp ftps gateway git
  grafana graphql guest health healthz help helpdesk home host hosting hostmaster hosts http https id idp image images imap
  imaps img info install internal intranet invoice ip isatap jenkins kb ldap legal live lists listserv loader local
  localdomain localhost log login logout logs m mail mailer mailserver main manage management marketing master me media
  member members metrics mobile monitor monitoring mta mta-sts mx my mysql network new news newsletter noc noreply
  no-reply ns nntp ntp null oauth office official oidc ops operator origin owner owa panel partner partners password
  pay payment payments ping platform pop pop3 pop3s portal postgres postmaster preview pricing private prod production
  profile prometheus proxy public rdp redirect register registration relay remote reports reset root router rss s3 saml
  sales sandbox search secure security server service services settings sftp signin signout signup
  sip sites smtp smtps soap spf sql ssh ssl ssladmin ssladministrator sslwebmaster sso staff stage staging static stats
  status storage stun sts subdomain subscribe super support svn sys sysadmin system tag tagmanager tags
  tagyard team telnet terms test testing tls token tools tracking trust undefined unsubscribe update updates upload
  uploads usenet user users uucp vault verify video voip vpn web webdav webhook webhooks webmail webmaster website wiki
  wildcard wpad ws wss www wwws xmpp
  `
    .trim()
    .split(/\s+/),
);

/** Whether a site id is a reserved label, or a reserved label with digits after it: `ns1`, `www-2`. */
export function isReservedLabel(id: string): boolean {
  return RESERVED.has(id) || RESERVED.has(id.replace(/-?\d+$/, ''));
}
