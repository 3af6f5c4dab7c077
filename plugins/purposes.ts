/** Cookies by their purpose, where their name tells it. The edge and the loader judge by the same names. */
export const ANALYTICS_COOKIE = /^(?:_ga(?:$|_)|FPID$|FPLC$)/;
export const ADS_COOKIE = /^(?:_fbp$|_fbc$|_gcl_|FPAU$|FPGCL)/;
